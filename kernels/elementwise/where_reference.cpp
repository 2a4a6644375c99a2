// Choice between two tensors, plain loops.
#include "tandem/kernels/elementwise/plain_loop.h"
#include "tandem/kernels/elementwise/where_implementations.h"

namespace tandem::kernels::reference {

void where(const Tensor& condition, const Tensor& a, const Tensor& b, const Out& out) {
  dispatch_all(out.dtype(), "where", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto offset = [&](std::int64_t i, const Tensor& x) { return offset_of(i, x.shape(), x.strides()); };
    for (std::int64_t i = 0; i < out.numel(); ++i) {
      const bool chosen = condition.data<std::uint8_t>()[offset(i, condition)] != 0;
      out.data<T>()[offset(i, out)] = chosen ? a.data<T>()[offset(i, a)] : b.data<T>()[offset(i, b)];
    }
  });
}

void where_backward(const Tensor& condition, bool chosen, const Tensor& grad_out, const Out& grad) {
  const Tensor zero = Tensor::zeros({}, grad_out.options()).expand(grad_out.shape());
  where(condition, chosen ? grad_out : zero, chosen ? zero : grad_out, grad);
}

}  // namespace tandem::kernels::reference

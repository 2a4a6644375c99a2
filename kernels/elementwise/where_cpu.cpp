// Choice between two tensors on the CPU, vectorised and threaded.
#include "tandem/kernels/cast/float_runs.h"
#include "tandem/kernels/elementwise/dense_run.h"
#include "tandem/kernels/elementwise/strided_loop.h"
#include "tandem/kernels/elementwise/where_implementations.h"

#include <type_traits>

namespace tandem::kernels::cpu {

namespace {

/// What stands for elements of T in loops: vectors have no structs.
template <typename T>
using Bits = std::conditional_t<is_half(dtype_of<T>), std::uint16_t, T>;

template <typename W>
void where_run(const std::uint8_t* condition, const W* a, const W* b, W* out, const std::array<std::int64_t, 4>& steps,
               std::int64_t length) {
  std::uint8_t conditions[kBlock];
  W from_a[kBlock], from_b[kBlock];
  const DenseRun masks(condition, steps[1], length, conditions);
  const DenseRun left(a, steps[2], length, from_a), right(b, steps[3], length, from_b);
  for_each_block(length, [&](std::int64_t at, std::int64_t count) {
    const std::uint8_t* const mask = masks.block(at, count);
    const W *const yes = left.block(at, count), *const no = right.block(at, count);
    W* const to = out + at;  // which is dense
    for (std::int64_t i = 0; i < count; ++i) {
      const W if_set = yes[i], if_not = no[i];
      to[i] = mask[i] != 0 ? if_set : if_not;
    }
  });
}

}  // namespace

void where(const Tensor& condition, const Tensor& a, const Tensor& b, const Out& out) {
  const StridedLoop<4> loop(out.shape(), {out.strides(), condition.strides(), a.strides(), b.strides()});
  dispatch_all(out.dtype(), "where", [&](auto tag) {
    using T = typename decltype(tag)::type;
    loop.parallel_runs([&](const std::array<std::int64_t, 4>& at, std::int64_t length) {
      where_run(condition.data<std::uint8_t>() + at[1], reinterpret_cast<const Bits<T>*>(a.data<T>() + at[2]),
                reinterpret_cast<const Bits<T>*>(b.data<T>() + at[3]),
                reinterpret_cast<Bits<T>*>(out.data<T>() + at[0]), loop.inner_strides(), length);
    });
  });
}

void where_backward(const Tensor& condition, bool chosen, const Tensor& grad_out, const Out& grad) {
  const Tensor zero = Tensor::zeros({}, grad_out.options()).expand(grad_out.shape());
  where(condition, chosen ? grad_out : zero, chosen ? zero : grad_out, grad);
}

}  // namespace tandem::kernels::cpu

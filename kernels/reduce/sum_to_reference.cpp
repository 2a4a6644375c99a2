// Sum over broadcast dimensions, plain loops.
#include "tandem/kernels/elementwise/plain_loop.h"
#include "tandem/kernels/reduce/accumulator.h"
#include "tandem/kernels/reduce/sum_to_implementations.h"

#include <vector>

namespace tandem::kernels::reference {

void sum_to(const Tensor& x, const Out& out) {
  const Tensor expanded = out.tensor().expand(x.shape());  // stride 0 where elements are summed up
  dispatch_all(x.dtype(), "sum_to", [&](auto tag) {
    using T = typename decltype(tag)::type;
    using Sum = Accumulator<T>;
    std::vector<Sum> sums(static_cast<std::size_t>(out.numel()));  // in the memory order of `out`
    for (std::int64_t i = 0; i < x.numel(); ++i) {
      const std::int64_t from = offset_of(i, x.shape(), x.strides());
      const std::int64_t to = offset_of(i, x.shape(), expanded.strides());
      sums[static_cast<std::size_t>(to)] += static_cast<Sum>(static_cast<compute_t<T>>(x.data<T>()[from]));
    }
    using Result = SumResult<T>;
    for (std::size_t i = 0; i < sums.size(); ++i)
      out.data<Result>()[i] = static_cast<Result>(static_cast<compute_t<Result>>(sums[i]));
  });
}

}  // namespace tandem::kernels::reference

// Copies between dtypes, plain loops.
#include "tandem/kernels/cast/cast_implementations.h"
#include "tandem/kernels/cast/convert.h"
#include "tandem/kernels/elementwise/plain_loop.h"

namespace tandem::kernels::reference {

void cast(const Tensor& source, const Out& destination) {
  dispatch_all(source.dtype(), "cast", [&](auto from_tag) {
    dispatch_all(destination.dtype(), "cast", [&](auto to_tag) {
      using From = typename decltype(from_tag)::type;
      using To = typename decltype(to_tag)::type;
      for (std::int64_t i = 0; i < source.numel(); ++i) {
        destination.data<To>()[offset_of(i, destination.shape(), destination.strides())] =
            convert<To>(source.data<From>()[offset_of(i, source.shape(), source.strides())]);
      }
    });
  });
}

}  // namespace tandem::kernels::reference

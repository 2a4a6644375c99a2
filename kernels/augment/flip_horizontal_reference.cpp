// Mirroring, plain loops.
#include "tandem/kernels/augment/flip_horizontal_implementations.h"
#include "tandem/kernels/image_view.h"

namespace tandem::kernels::reference {

void flip_horizontal(const Tensor& x, const Out& out) {
  dispatch_floating(x.dtype(), "flip_horizontal", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const ImageView<const T> from(x);
    const ImageView<T> to(out);
    for (std::int64_t n = 0; n < x.size(0); ++n) {
      for (std::int64_t c = 0; c < x.size(1); ++c) {
        for (std::int64_t h = 0; h < x.size(2); ++h) {
          for (std::int64_t w = 0; w < x.size(3); ++w) to(n, c, h, w) = from(n, c, h, x.size(3) - 1 - w);
        }
      }
    }
  });
}

}  // namespace tandem::kernels::reference

// Cropping, plain loops.
#include "tandem/kernels/augment/crop2d_implementations.h"
#include "tandem/kernels/image_view.h"

namespace tandem::kernels::reference {

namespace {

template <typename Visit>
void for_each_pixel(const Shape& shape, Visit&& visit) {
  for (std::int64_t n = 0; n < shape[0]; ++n) {
    for (std::int64_t c = 0; c < shape[1]; ++c) {
      for (std::int64_t h = 0; h < shape[2]; ++h) {
        for (std::int64_t w = 0; w < shape[3]; ++w) visit(n, c, h, w);
      }
    }
  }
}

}  // namespace

void crop2d(const Tensor& x, std::int64_t top, std::int64_t left, const Out& out) {
  dispatch_floating(x.dtype(), "crop2d", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const ImageView<const T> image(x);
    const ImageView<T> window(out);
    for_each_pixel(out.shape(),
                   [&](auto n, auto c, auto h, auto w) { window(n, c, h, w) = image(n, c, h + top, w + left); });
  });
}

void crop2d_backward(const Tensor& grad_out, std::int64_t top, std::int64_t left, const Out& grad_x) {
  dispatch_floating(grad_x.dtype(), "crop2d_backward", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const ImageView<const T> window(grad_out);
    const ImageView<T> image(grad_x);
    for_each_pixel(grad_x.shape(), [&](auto n, auto c, auto h, auto w) {
      const bool inside = h >= top && h < top + grad_out.size(2) && w >= left && w < left + grad_out.size(3);
      image(n, c, h, w) = inside ? window(n, c, h - top, w - left) : T{};
    });
  });
}

}  // namespace tandem::kernels::reference

// Global average pooling in plain loops: any strides, any floating dtype.
#include "tandem/kernels/image_view.h"
#include "tandem/kernels/pool/global_avg_pool2d_implementations.h"

namespace tandem::kernels::reference {

void global_avg_pool2d_forward(const Tensor& x, const Out& y) {
  dispatch_floating(x.dtype(), "global_avg_pool2d", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const ImageView<const T> in(x);
    const ImageView<T> out(y);
    for (std::int64_t n = 0; n < x.size(0); ++n) {
      for (std::int64_t c = 0; c < x.size(1); ++c) {
        double sum = 0.0;
        for (std::int64_t h = 0; h < x.size(2); ++h) {
          for (std::int64_t w = 0; w < x.size(3); ++w) sum += in(n, c, h, w);
        }
        out(n, c, 0, 0) = T(static_cast<compute_t<T>>(sum / static_cast<double>(x.size(2) * x.size(3))));
      }
    }
  });
}

void global_avg_pool2d_backward(const Tensor& grad_y, const Out& grad_x) {
  dispatch_floating(grad_x.dtype(), "global_avg_pool2d_backward", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const ImageView<const T> gradient(grad_y);
    const ImageView<T> out(grad_x);
    const double weight = 1.0 / static_cast<double>(grad_x.size(2) * grad_x.size(3));
    for (std::int64_t n = 0; n < grad_x.size(0); ++n) {
      for (std::int64_t c = 0; c < grad_x.size(1); ++c) {
        const T share = T(static_cast<compute_t<T>>(gradient(n, c, 0, 0) * weight));
        for (std::int64_t h = 0; h < grad_x.size(2); ++h) {
          for (std::int64_t w = 0; w < grad_x.size(3); ++w) out(n, c, h, w) = share;
        }
      }
    }
  });
}

}  // namespace tandem::kernels::reference

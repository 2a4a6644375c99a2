// Average pooling in plain loops: any strides, any floating dtype, sums in double.
#include "tandem/kernels/image_view.h"
#include "tandem/kernels/pool/avg_pool2d_implementations.h"

namespace tandem::kernels::reference {

void avg_pool2d_forward(const Tensor& x, const Pool2dOptions& options, const Out& y) {
  dispatch_floating(x.dtype(), "avg_pool2d", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const ImageView<const T> in(x);
    const ImageView<T> out(y);
    for (std::int64_t n = 0; n < y.size(0); ++n) {
      for (std::int64_t c = 0; c < y.size(1); ++c) {
        for (std::int64_t i = 0; i < y.size(2); ++i) {
          for (std::int64_t j = 0; j < y.size(3); ++j) {
            const PoolRange rows = pool_range(i, 0, x.size(2), options), columns = pool_range(j, 1, x.size(3), options);
            double sum = 0.0;
            for (std::int64_t row = rows.begin; row < rows.end; ++row) {
              for (std::int64_t column = columns.begin; column < columns.end; ++column) sum += in(n, c, row, column);
            }
            const double mean = sum * avg_pool2d_weight(i, j, x.size(2), x.size(3), options);
            out(n, c, i, j) = T(static_cast<compute_t<T>>(mean));
          }
        }
      }
    }
  });
}

void avg_pool2d_backward(const Tensor& grad_y, const Pool2dOptions& options, const Out& grad_x) {
  const std::int64_t height = grad_x.size(2), width = grad_x.size(3);
  dispatch_floating(grad_x.dtype(), "avg_pool2d_backward", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const ImageView<const T> gradient(grad_y);
    const ImageView<T> out(grad_x);
    for (std::int64_t n = 0; n < grad_x.size(0); ++n) {
      for (std::int64_t c = 0; c < grad_x.size(1); ++c) {
        for (std::int64_t h = 0; h < height; ++h) {
          for (std::int64_t w = 0; w < width; ++w) {
            const PoolRange rows = covering_outputs(h, 0, grad_y.size(2), options);
            const PoolRange columns = covering_outputs(w, 1, grad_y.size(3), options);
            double sum = 0.0;
            for (std::int64_t i = rows.begin; i < rows.end; ++i) {
              for (std::int64_t j = columns.begin; j < columns.end; ++j) {
                sum += gradient(n, c, i, j) * avg_pool2d_weight(i, j, height, width, options);
              }
            }
            out(n, c, h, w) = T(static_cast<compute_t<T>>(sum));
          }
        }
      }
    }
  });
}

}  // namespace tandem::kernels::reference

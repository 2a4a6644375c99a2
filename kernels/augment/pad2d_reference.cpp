// Padding, plain loops.
#include "tandem/kernels/augment/pad2d_implementations.h"
#include "tandem/kernels/image_view.h"

#include <vector>

namespace tandem::kernels::reference {

namespace {

/// Calls `visit(n, c, h, w, row, column)` for each element of the padded images and the element of `x` that it shows;
/// row is -1 where that is a zero.
template <typename Visit>
void for_each_padded(const Shape& x, const Pad2dOptions& options, const Shape& out, Visit&& visit) {
  for (std::int64_t n = 0; n < out[0]; ++n) {
    for (std::int64_t c = 0; c < out[1]; ++c) {
      for (std::int64_t h = 0; h < out[2]; ++h) {
        for (std::int64_t w = 0; w < out[3]; ++w) {
          std::int64_t row = h - options.top, column = w - options.left;
          if (options.mode == PadMode::reflect) {
            row = kernels::detail::reflect(row, x[2]);
            column = kernels::detail::reflect(column, x[3]);
          }
          const bool inside = row >= 0 && row < x[2] && column >= 0 && column < x[3];
          visit(n, c, h, w, inside ? row : -1, column);
        }
      }
    }
  }
}

}  // namespace

void pad2d(const Tensor& x, const Pad2dOptions& options, const Out& out) {
  dispatch_floating(x.dtype(), "pad2d", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const ImageView<const T> in(x);
    const ImageView<T> padded(out);
    for_each_padded(x.shape(), options, out.shape(), [&](auto n, auto c, auto h, auto w, auto row, auto column) {
      padded(n, c, h, w) = row < 0 ? T{} : in(n, c, row, column);
    });
  });
}

void pad2d_backward(const Tensor& grad_out, const Pad2dOptions& options, const Out& grad_x) {
  dispatch_floating(grad_x.dtype(), "pad2d_backward", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const Out sums(Tensor::zeros(grad_x.shape(), {.dtype = DType::f64}));
    const ImageView<double> sum(sums);
    const ImageView<const T> grad(grad_out);
    const ImageView<T> result(grad_x);
    for_each_padded(grad_x.shape(), options, grad_out.shape(),
                    [&](auto n, auto c, auto h, auto w, auto row, auto column) {
                      if (row >= 0)
                        sum(n, c, row, column) += static_cast<double>(static_cast<compute_t<T>>(grad(n, c, h, w)));
                    });
    for_each_padded(grad_x.shape(), {}, grad_x.shape(), [&](auto n, auto c, auto h, auto w, auto, auto) {
      result(n, c, h, w) = static_cast<T>(static_cast<compute_t<T>>(sum(n, c, h, w)));
    });
  });
}

}  // namespace tandem::kernels::reference

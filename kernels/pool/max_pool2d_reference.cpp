// Max pooling in plain loops: any strides, any floating dtype.
#include "tandem/kernels/image_view.h"
#include "tandem/kernels/pool/max_pool2d_implementations.h"

namespace tandem::kernels::reference {

namespace {

/// Calls visit(n, c, i, j) for every element of `y`.
template <typename Visitor>
void for_each_output(const Tensor& y, Visitor&& visit) {
  for (std::int64_t n = 0; n < y.size(0); ++n) {
    for (std::int64_t c = 0; c < y.size(1); ++c) {
      for (std::int64_t i = 0; i < y.size(2); ++i) {
        for (std::int64_t j = 0; j < y.size(3); ++j) visit(n, c, i, j);
      }
    }
  }
}

template <typename T, typename Index>
void forward(const Tensor& x, const Pool2dOptions& options, const Out& y, const Out& indices) {
  const ImageView<const T> in(x);
  const ImageView<T> out(y);
  for_each_output(y, [&](std::int64_t n, std::int64_t c, std::int64_t i, std::int64_t j) {
    const PoolRange rows = pool_range(i, 0, x.size(2), options), columns = pool_range(j, 1, x.size(3), options);
    compute_t<T> best = in(n, c, rows.begin, columns.begin);
    std::int64_t best_row = rows.begin, best_column = columns.begin;
    for (std::int64_t row = rows.begin; row < rows.end; ++row) {
      for (std::int64_t column = columns.begin; column < columns.end; ++column) {
        const compute_t<T> value = in(n, c, row, column);
        if (!(value > best) && value == value) continue;
        best = value;
        best_row = row;
        best_column = column;
      }
    }
    out(n, c, i, j) = T(best);
    if (!indices.defined()) return;
    const std::int64_t position = (best_row - rows.first) * options.kernel[1] + best_column - columns.first;
    ImageView<Index>{indices}(n, c, i, j) = static_cast<Index>(position);
  });
}

template <typename T, typename Index>
void backward(const Tensor& grad_y, const Tensor& indices, const Pool2dOptions& options, const Out& grad_x) {
  const ImageView<const T> gradient(grad_y);
  const ImageView<T> out(grad_x);
  const ImageView<const Index> position(indices);
  grad_x.zero();
  for_each_output(grad_y, [&](std::int64_t n, std::int64_t c, std::int64_t i, std::int64_t j) {
    const PoolRange rows = pool_range(i, 0, grad_x.size(2), options),
                    columns = pool_range(j, 1, grad_x.size(3), options);
    const std::int64_t row = rows.first + position(n, c, i, j) / options.kernel[1];
    const std::int64_t column = columns.first + position(n, c, i, j) % options.kernel[1];
    T& sum = out(n, c, row, column);
    sum = T(compute_t<T>(sum) + compute_t<T>(gradient(n, c, i, j)));
  });
}

}  // namespace

void max_pool2d_forward(const Tensor& x, const Pool2dOptions& options, const Out& y, const Out& indices) {
  dispatch_floating(x.dtype(), "max_pool2d", [&](auto tag) {
    using T = typename decltype(tag)::type;
    if (max_pool2d_index_dtype(options) == DType::u8) return forward<T, std::uint8_t>(x, options, y, indices);
    forward<T, std::int32_t>(x, options, y, indices);
  });
}

void max_pool2d_backward(const Tensor& grad_y, const Tensor& indices, const Pool2dOptions& options, const Out& grad_x) {
  dispatch_floating(grad_x.dtype(), "max_pool2d_backward", [&](auto tag) {
    using T = typename decltype(tag)::type;
    if (indices.dtype() == DType::u8) return backward<T, std::uint8_t>(grad_y, indices, options, grad_x);
    backward<T, std::int32_t>(grad_y, indices, options, grad_x);
  });
}

}  // namespace tandem::kernels::reference

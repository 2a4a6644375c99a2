// Differentiable softmax: a dimension becomes the rows of a matrix.
#include "tandem/autograd/functions/softmax.h"

#include "tandem/autograd/functions/operand.h"
#include "tandem/autograd/precision.h"
#include "tandem/autograd/record.h"
#include "tandem/core/describe.h"
#include "tandem/kernels/activation/softmax.h"

#include <algorithm>
#include <numeric>

namespace tandem::autograd {

namespace {

/// A tensor with one dimension as rows of numbers that follow each other, and back.
class RowsOf {
 public:
  /// The other dimensions in the order of their strides: no copy where a dense tensor has them so.
  RowsOf(const Tensor& x, int dim) : order_(static_cast<std::size_t>(x.rank())), back_(order_.size()) {
    std::iota(order_.begin(), order_.end(), 0);
    std::stable_sort(order_.begin(), order_.end(),
                     [&](int a, int b) { return a != dim && (b == dim || x.stride(a) > x.stride(b)); });
    for (std::size_t i = 0; i < order_.size(); ++i) {
      back_[static_cast<std::size_t>(order_[i])] = static_cast<int>(i);
      shape_.push_back(x.size(order_[i]));
    }
  }

  /// [R, C], dense.
  Tensor matrix_of(const Tensor& x) const { return x.permute(order_).contiguous().view(matrix_shape()); }
  Shape matrix_shape() const {
    const std::int64_t columns = shape_[-1];
    return {columns == 0 ? 0 : element_count(shape_) / columns, columns};
  }
  Tensor from_matrix(const Tensor& matrix) const { return matrix.view(shape_).permute(back_); }

 private:
  std::vector<int> order_, back_;
  Shape shape_;
};

Tensor softmax_of(std::string_view op, kernels::SoftmaxResult result, const Tensor& x, int dim) {
  require(x.defined() && is_floating(x.dtype()) && x.rank() >= 1,
          "{}: needs a floating tensor of one dimension or more, got {}", op, x);
  const RowsOf rows(x, dimension_of(op, x, dim));
  const TensorOptions options{result_dtype(OpKind::exponential, x.dtype()), Layout::row_major, x.device()};
  const Tensor matrix = Tensor::empty(rows.matrix_shape(), options);
  const Tensor y = unrecorded([&] {
    kernels::softmax_forward(result, rows.matrix_of(x), Out(matrix));
    return rows.from_matrix(matrix);
  });
  if (!should_record({x})) return y;
  return record(op, {x}, y,
                [result, rows, saved = SavedTensor(matrix), x_options = x.options()](const BackwardContext& context) {
                  const Tensor grad_x = Tensor::empty(rows.matrix_shape(), x_options);
                  kernels::softmax_backward(result, saved.get(), rows.matrix_of(context.grad_output()), Out(grad_x));
                  return std::vector<Tensor>{rows.from_matrix(grad_x)};
                });
}

}  // namespace

Tensor softmax(const Tensor& x, int dim) {
  return softmax_of("softmax", kernels::SoftmaxResult::probabilities, x, dim);
}

Tensor log_softmax(const Tensor& x, int dim) {
  return softmax_of("log_softmax", kernels::SoftmaxResult::logarithms, x, dim);
}

}  // namespace tandem::autograd

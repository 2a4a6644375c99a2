// linear on the GPU: bias and ReLU as the product's last step, ReLU's gradient as the gradient is loaded, and the
// bias's as that is in shared memory for the weights'.
#include "tandem/kernels/gemm/linear_implementations.h"

#include "tandem/kernels/device/dispatch.h"
#include "tandem/kernels/gemm/column_sum.h"
#include "tandem/kernels/gemm/product.cuh"

namespace tandem::kernels::cuda::tile {

void linear_forward(const Tensor& x, const Tensor& weight, const Tensor& bias, bool relu, const Out& y) {
  const std::int64_t rows = x.size(0), inputs = x.size(1), outputs = weight.size(0);
  device::dispatch(x.dtype(), "linear_forward", [&](auto tag) {
    using T = typename decltype(tag)::type;
    if (y.numel() == 0) return;
    const Matrix<T> a{x.data<T>(), rows, inputs, 1}, b{weight.data<T>(), outputs, inputs, 1};
    const MatrixResult<T> result{.data = y.data<T>(),
                                 .rows = rows,
                                 .columns = outputs,
                                 .row_stride = outputs,
                                 .bias = bias.defined() ? bias.data<T>() : nullptr,
                                 .relu = relu};
    multiply(a, b, result, inputs, a.takes_vectors(inputs) && b.takes_vectors(inputs), y);
  });
}

void linear_backward(const Tensor& x, const Tensor& weight, const Tensor& y, const Tensor& grad_y, const Out& grad_x,
                     const Out& grad_weight, const Out& grad_bias) {
  const std::int64_t rows = x.size(0), inputs = x.size(1), outputs = weight.size(0);
  const bool has_weights = grad_weight.defined() && grad_weight.numel() > 0;
  device::dispatch(x.dtype(), "linear_backward", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const Gate<T> gate{.output = y.defined() ? y.data<T>() : nullptr};
    if (grad_x.defined() && grad_x.numel() > 0) {  // [M, O] [O, I]
      const Matrix<T> a{grad_y.data<T>(), rows, outputs, 1, gate}, b{weight.data<T>(), inputs, 1, inputs};
      const MatrixResult<T> result{.data = grad_x.data<T>(), .rows = rows, .columns = inputs, .row_stride = inputs};
      multiply(a, b, result, outputs, a.takes_vectors(outputs) && b.takes_vectors(outputs), grad_x);
    }
    if (has_weights) {  // [O, M] [M, I]
      const Matrix<T> a{grad_y.data<T>(), outputs, 1, outputs, gate}, b{x.data<T>(), inputs, 1, inputs};
      const MatrixResult<T> result{
          .data = grad_weight.data<T>(), .rows = outputs, .columns = inputs, .row_stride = inputs};
      const bool vectors = a.takes_vectors(rows) && b.takes_vectors(rows);
      if (!grad_bias.defined()) return multiply(a, b, result, rows, vectors, grad_weight);
      multiply(a, b, MatrixAndRowSums<T>{result, grad_bias.data<T>()}, rows, vectors, grad_weight);
    }
  });
  if (grad_bias.defined() && !has_weights) column_sum(rows, outputs, grad_y, y, grad_bias);
}

}  // namespace tandem::kernels::cuda::tile

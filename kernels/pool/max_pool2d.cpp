// Max pooling: checks, and the choice of implementation.
#include "tandem/kernels/pool/max_pool2d.h"
#include "tandem/kernels/pool/max_pool2d_implementations.h"

#include "tandem/kernels/cuda_choice.h"
#include "tandem/kernels/reduce/sum_to.h"
#include "tandem/kernels/traffic.h"

namespace tandem::kernels {

namespace {

void check(std::string_view op, const Tensor& x, const Pool2dOptions& options, const Tensor& y, const Tensor& indices) {
  const Shape expected = pool2d_output_shape(op, x.shape(), options);
  require(is_floating(x.dtype()) && y.dtype() == x.dtype() && y.shape() == expected,
          "{}: image {} pools to shape {} of the same floating dtype, got {}", op, describe(x), to_string(expected),
          describe(y));
  require(!indices.defined() || (indices.shape() == expected && indices.dtype() == max_pool2d_index_dtype(options)),
          "{}: indices must be {}{}, got {}", op, name_of(max_pool2d_index_dtype(options)), to_string(expected),
          describe(indices));
  require_one_device(op, x, y, indices);
}

}  // namespace

DType max_pool2d_index_dtype(const Pool2dOptions& options) {
  return options.kernel[0] <= 256 && options.kernel[1] <= 256 && options.kernel[0] * options.kernel[1] <= 256
             ? DType::u8
             : DType::i32;
}

void max_pool2d_forward(const Tensor& x, const Pool2dOptions& options, const Out& y, const Out& indices) {
  check("max_pool2d", x, options, y, indices);
  if (y.numel() == 0) return;
  note_traffic(x, y, indices);
  if constexpr (kHasCuda)
    if (const CudaOp op{"max_pool2d_forward", y}) return cuda::max_pool2d_forward(x, options, y, indices);
  if (cpu::supports_max_pool2d(x, y, indices)) return cpu::max_pool2d_forward(x, options, y, indices);
  reference::max_pool2d_forward(x, options, y, indices);
}

void max_pool2d_backward(const Tensor& grad_y, const Tensor& indices, const Pool2dOptions& options, const Out& grad_x,
                         const Out& sums) {
  constexpr std::string_view kOp = "max_pool2d_backward";
  require(indices.defined(), "{}: needs the indices of the forward pass", kOp);
  check(kOp, grad_x, options, grad_y, indices);
  if (sums.defined()) {
    require(sums.shape() == Shape{grad_x.size(1)} && sums.dtype() == grad_x.dtype() && sums.is_dense(),
            "{}: sums must be dense {} [{}], got {}", kOp, name_of(grad_x.dtype()), grad_x.size(1), describe(sums));
    require_one_device(kOp, grad_x, sums);
  }
  if (grad_x.numel() == 0) {
    if (sums.defined()) sums.fill(0.0);
    return;
  }
  note_traffic(grad_y, indices, grad_x, sums);
  if constexpr (kHasCuda)
    if (const CudaOp op{kOp, grad_x}) return cuda::max_pool2d_backward(grad_y, indices, options, grad_x, sums);
  if (cpu::supports_max_pool2d(grad_x, grad_y, indices)) {
    cpu::max_pool2d_backward(grad_y, indices, options, grad_x);
  } else {
    reference::max_pool2d_backward(grad_y, indices, options, grad_x);
  }
  if (sums.defined()) sum_to(grad_x, Out(sums.tensor().view({1, grad_x.size(1), 1, 1})));
}

}  // namespace tandem::kernels

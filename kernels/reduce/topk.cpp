// The largest or smallest elements of each row: checks and choice of implementation.
#include "tandem/kernels/reduce/topk.h"
#include "tandem/kernels/reduce/topk_implementations.h"

#include "tandem/core/describe.h"
#include "tandem/kernels/cuda_choice.h"

#include <limits>

namespace tandem::kernels {
namespace {

void check_rows(std::string_view op, std::string_view name, const Tensor& tensor) {
  require(tensor.defined() && tensor.rank() == 2, "{}: {} must have shape [rows, elements], got {}", op, name, tensor);
  require(tensor.is_dense(Layout::row_major), "{}: {} {} with strides {} must be dense; pass contiguous()", op, name,
          tensor, tensor.strides());
}

/// Throws Error unless whole [R, N] and part [R, k] fit.
void check(std::string_view op, const Tensor& whole, const Tensor& part, const Tensor& indices) {
  check_rows(op, "indices", indices);
  require(is_floating(whole.dtype()), "{}: needs a floating dtype (f64, f32, f16 or bf16), got {}", op, whole);
  require(indices.dtype() == DType::i64, "{}: indices must be i64, got {}", op, indices);
  require(indices.size(0) == whole.size(0) && indices.size(1) <= whole.size(1),
          "{}: indices {} do not fit rows {}: as many rows, and no more elements", op, indices, whole);
  require(whole.size(1) < std::numeric_limits<std::uint32_t>::max(), "{}: rows of {} have 2^32 elements or more", op,
          whole);
  if (!part.defined()) return;
  check_rows(op, "values", part);
  require(part.shape() == indices.shape() && part.dtype() == whole.dtype(), "{}: values should be {}{}, got {}", op,
          whole.dtype(), indices.shape(), part);
}

}  // namespace

void topk(const Tensor& x, const TopkOptions& options, const Out& values, const Out& indices) {
  check_rows("topk", "x", x);
  check("topk", x, values, indices);
  require_one_device("topk", x, values.tensor(), indices.tensor());
  if (indices.numel() == 0) return;
  if constexpr (kHasCuda)
    if (const CudaOp op{"topk", x}) return cuda::topk(x, options, values, indices);
  if (cpu::topk_supports(x)) return cpu::topk(x, options, values, indices);
  reference::topk(x, options, values, indices);
}

void topk_backward(const Tensor& grad_values, const Tensor& indices, const Out& grad_x) {
  check_rows("topk_backward", "grad_values", grad_values);
  check_rows("topk_backward", "grad_x", grad_x);
  check("topk_backward", grad_x, grad_values, indices);
  require_one_device("topk_backward", grad_x, grad_values, indices);
  grad_x.zero();
  if (indices.numel() == 0) return;
  if constexpr (kHasCuda)
    if (const CudaOp op{"topk_backward", grad_x}) return cuda::topk_backward(grad_values, indices, grad_x);
  reference::topk_backward(grad_values, indices, grad_x);
}

}  // namespace tandem::kernels

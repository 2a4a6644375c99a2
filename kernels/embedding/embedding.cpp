// Looking up rows: checks, and the choice of implementation.
#include "tandem/kernels/embedding/embedding.h"

#include "tandem/core/describe.h"
#include "tandem/kernels/cast/float_runs.h"
#include "tandem/kernels/cuda_choice.h"
#include "tandem/kernels/embedding/embedding_implementations.h"

namespace tandem::kernels {

namespace {

/// `rows` is [N, D], `weight` [V, D].
void check(std::string_view op, const Tensor& indices, const Tensor& weight, const Tensor& rows) {
  require(weight.rank() == 2 && is_floating(weight.dtype()) && weight.is_dense(Layout::row_major),
          "{}: needs a floating weight [rows, features], dense row-major, got {}", op, weight);
  require(indices.rank() == 1 && indices.dtype() == DType::i64, "{}: needs indices i64[N], got {}", op, indices);
  require(rows.dtype() == weight.dtype() && rows.shape() == Shape{indices.size(0), weight.size(1)} &&
              rows.is_dense(Layout::row_major),
          "{}: rows of {} for {} must be dense {}[{}, {}], got {}", op, weight, indices, weight.dtype(),
          indices.size(0), weight.size(1), rows);
  require_one_device(op, weight, indices, rows);
}

}  // namespace

void require_indices(const Tensor& indices, std::int64_t rows, std::string_view op) {
  require(indices.dtype() == DType::i64 && indices.rank() == 1, "{}: needs indices i64[N], got {}", op, indices);
  if (indices.numel() == 0) return;
  const Tensor here = indices.to(Device{});
  const std::int64_t* const values = here.data<std::int64_t>();
  for (std::int64_t n = 0; n < here.size(0); ++n) {
    const std::int64_t index = values[n * here.stride(0)];
    require(index >= 0 && index < rows, "{}: index {} is {}, outside of the {} rows of the weight", op, n, index, rows);
  }
}

void embedding_forward(const Tensor& indices, const Tensor& weight, const Out& y) {
  constexpr std::string_view kOp = "embedding";
  check(kOp, indices, weight, y);
  if constexpr (kHasCuda)
    if (const CudaOp op{"embedding_forward", y}) return cuda::embedding_forward(indices, weight, y);
  require_indices(indices, weight.size(0), kOp);
  cpu::embedding_forward(indices, weight, y);
}

void embedding_backward(const Tensor& indices, const Tensor& grad_y, const Out& grad_weight) {
  constexpr std::string_view kOp = "embedding_backward";
  check(kOp, indices, grad_weight, grad_y);
  if constexpr (kHasCuda)
    if (const CudaOp op{kOp, grad_weight}) return cuda::embedding_backward(indices, grad_y, grad_weight);
  require_indices(indices, grad_weight.size(0), kOp);
  if (cpu::computes_in_float(grad_weight.dtype())) return cpu::embedding_backward(indices, grad_y, grad_weight);
  reference::embedding_backward(indices, grad_y, grad_weight);
}

}  // namespace tandem::kernels

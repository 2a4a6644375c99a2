// batched_gemm: checks, and the choice between the fast and the reference path.
#include "tandem/kernels/gemm/batched_gemm.h"
#include "tandem/kernels/gemm/batched_gemm_implementations.h"

#include "tandem/core/describe.h"
#include "tandem/kernels/cuda_choice.h"
#include "tandem/kernels/gemm/batches.h"
#include "tandem/kernels/gemm/product_work.h"

namespace tandem::kernels {
namespace {

/// True if the leading dimensions of `operand` expand to those of `c`.
bool expands(const Tensor& operand, const Tensor& c) {
  if (operand.rank() > c.rank()) return false;
  for (int dim = 3; dim <= operand.rank(); ++dim)
    if (operand.size(-dim) != 1 && operand.size(-dim) != c.size(-dim)) return false;
  return true;
}

/// The operand with the leading dimensions of `c`.
Tensor expanded(const Tensor& operand, const Tensor& c) {
  Shape shape = c.shape();
  shape[-2] = operand.size(-2);
  shape[-1] = operand.size(-1);
  return operand.expand(shape);
}

}  // namespace

void batched_gemm(const Tensor& a, const Tensor& b, const Out& c) {
  require(a.defined() && b.defined() && c.defined(), "batched_gemm: needs defined tensors, got a {}, b {}, c {}", a, b,
          c.tensor());
  require(a.rank() >= 2 && b.rank() >= 2 && c.rank() >= 2, "batched_gemm: needs matrices, got a {}, b {}, c {}", a, b,
          c.tensor());
  const bool fits = c.size(-2) == a.size(-2) && a.size(-1) == b.size(-2) && b.size(-1) == c.size(-1);
  require(fits && expands(a, c) && expands(b, c), "batched_gemm: shapes do not fit: a {}, b {}, c {}", a, b,
          c.tensor());
  require(is_floating(c.dtype()), "batched_gemm: needs a floating dtype (f64, f32, f16 or bf16), got {}", c.tensor());
  require(a.dtype() == b.dtype() && a.dtype() == c.dtype(), "batched_gemm: dtypes differ: a {}, b {}, c {}; use cast",
          a, b, c.tensor());
  require(c.is_dense(Layout::row_major), "batched_gemm: c {} with strides {} must be dense; make it contiguous()",
          c.tensor(), c.strides());
  require_one_device("batched_gemm", c, a, b);
  if (c.numel() == 0) return;
  if (a.size(-1) == 0) return c.zero();
  note_products(c.numel() / (c.size(-2) * c.size(-1)), c.size(-2), c.size(-1), a.size(-1), c.dtype());
  const Batches batches = merge_batches(expanded(a, c), expanded(b, c), c);
  if constexpr (kHasCuda)
    if (const CudaOp op{"batched_gemm", c}) return cuda::batched_gemm(batches.a, batches.b, batches.c);
  if (cpu::supports_batched_gemm(c)) return cpu::batched_gemm(batches.a, batches.b, batches.c);
  reference::batched_gemm(batches.a, batches.b, batches.c);
}

}  // namespace tandem::kernels

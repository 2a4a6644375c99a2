// Sums of rows: checks and choice of implementation.
#include "tandem/kernels/reduce/add_rows.h"
#include "tandem/kernels/cuda_choice.h"
#include "tandem/kernels/reduce/add_rows_implementations.h"

namespace tandem::kernels {

void add_rows(const Tensor& rows, double divisor, const Out& sum) {
  require(rows.defined() && sum.defined(), "add_rows: needs defined tensors, got {} and {}", describe(rows),
          describe(sum));
  require(is_floating(rows.dtype()), "add_rows: needs a floating dtype (f64, f32, f16 or bf16), got {}",
          describe(rows));
  require(rows.rank() == 2 && rows.size(0) > 0 && rows.is_dense(Layout::row_major),
          "add_rows: needs one row or more, dense and row-major, got {} with strides {}", describe(rows),
          to_string(rows.strides()));
  require(sum.shape() == Shape{rows.size(1)} && sum.is_dense() && sum.dtype() == rows.dtype(),
          "add_rows: the output for {} must be {}[{}], dense, got {} with strides {}", describe(rows),
          name_of(rows.dtype()), rows.size(1), describe(sum), to_string(sum.strides()));
  require_one_device("add_rows", sum, rows);
  if constexpr (kHasCuda)
    if (const CudaOp op{"add_rows", sum}) return cuda::add_rows(rows, divisor, sum);
  reference::add_rows(rows, divisor, sum);
}

}  // namespace tandem::kernels

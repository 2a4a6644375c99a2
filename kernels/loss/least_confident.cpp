// The least confident rows: checks, and the choice of implementation.
#include "tandem/kernels/loss/least_confident.h"

#include "tandem/core/describe.h"
#include "tandem/kernels/cuda_choice.h"
#include "tandem/kernels/loss/least_confident_implementations.h"
#include "tandem/kernels/traffic.h"

namespace tandem::kernels {

void least_confident(const Tensor& logits, const Out& chosen, const Out& places) {
  constexpr std::string_view kOp = "least_confident";
  require(logits.defined() && logits.rank() == 2 && is_floating(logits.dtype()) && logits.size(1) > 0,
          "{}: needs floating logits [N, C] of one class or more, got {}", kOp, describe(logits));
  const std::int64_t rows = logits.size(0);
  for (const Out* const result : {&chosen, &places}) {
    require(result->defined() && result->dtype() == DType::i64 && result->rank() == 1 &&
                result->is_dense(Layout::row_major),
            "{}: numbers of rows go to dense i64 vectors, got {}", kOp, describe(result->tensor()));
  }
  require(places.size(0) == rows && chosen.size(0) <= rows,
          "{}: {} and {} do not fit logits {}: a place for each row, and no more chosen ones", kOp,
          describe(chosen.tensor()), describe(places.tensor()), describe(logits));
  require_one_device(kOp, logits, chosen.tensor(), places.tensor());
  if (rows == 0) return;
  note_traffic(logits, places);
  if constexpr (kHasCuda)
    if (const CudaOp op{kOp, logits}) return cuda::least_confident(logits, chosen, places);
  reference::least_confident(logits, chosen, places);
}

}  // namespace tandem::kernels

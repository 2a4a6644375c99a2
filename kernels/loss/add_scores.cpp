// Sums of loss and accuracy: checks, and the choice of implementation.
#include "tandem/kernels/loss/add_scores.h"

#include "tandem/core/memory.h"
#include "tandem/kernels/cuda_choice.h"
#include "tandem/kernels/loss/add_scores_implementations.h"
#include "tandem/kernels/traffic.h"

#include <cstring>
#include <limits>

namespace tandem::kernels {

namespace {

constexpr std::string_view kOp = "add_scores";
constexpr std::int64_t kBytes = sizeof(ScoreSums);

void check_sums(const Tensor& sums) {
  require(sums.defined() && sums.dtype() == DType::u8 && sums.shape() == Shape{kBytes} && sums.is_dense() &&
              reinterpret_cast<std::uintptr_t>(sums.raw_data()) % alignof(ScoreSums) == 0,
          "{}: the sums must be those of make_score_sums(), u8[{}], got {}", kOp, kBytes, describe(sums));
}

}  // namespace

Tensor make_score_sums(Device device, const ScoreSums& sums) {
  const MemoryTagScope scope(MemoryTag::workspace);
  const Tensor here = Tensor::empty({kBytes}, {.dtype = DType::u8});
  std::memcpy(Out(here).raw_data(), &sums, sizeof sums);
  return here.to(device);
}

ScoreSums read_score_sums(const Tensor& sums) {
  check_sums(sums);
  require(sums.device() == Device{}, "{}: sums on {} are read once they are copied to the CPU", kOp,
          name_of(sums.device()));
  ScoreSums result;
  std::memcpy(&result, sums.raw_data(), sizeof result);
  return result;
}

void add_scores(const Tensor& loss, const Tensor& logits, const Tensor& labels, const BatchCount& count,
                const Out& sums) {
  check_sums(sums);
  require(!loss.defined() || (loss.numel() == 1 && is_floating(loss.dtype())),
          "{}: the loss must be one floating number, got {}", kOp, describe(loss));
  require(logits.defined() == labels.defined(), "{}: needs logits and labels, or neither; got {} and {}", kOp,
          describe(logits), describe(labels));
  if (logits.defined()) {
    require(logits.rank() == 2 && is_floating(logits.dtype()) && labels.dtype() == DType::i64 &&
                labels.shape() == Shape{logits.size(0)},
            "{}: needs floating logits [N, C] and labels i64[N], got {} and {}", kOp, describe(logits),
            describe(labels));
    require(logits.size(1) <= std::numeric_limits<std::int32_t>::max(), "{}: {} classes are too many", kOp,
            logits.size(1));
  }
  require_one_device(kOp, sums, loss, logits, labels);
  note_traffic(logits, labels);
  if constexpr (kHasCuda)
    if (const CudaOp op{kOp, sums}) return cuda::add_scores(loss, logits, labels, count, sums);
  reference::add_scores(loss, logits, labels, count, sums);
}

}  // namespace tandem::kernels

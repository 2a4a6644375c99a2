// A training step whose bits do not depend on the number of ranks.
#pragma once

#include "tandem/comm/ddp/micro_batch_sum.h"
#include "tandem/comm/process_group.h"
#include "tandem/core/named_tensors.h"
#include "tandem/core/tensor.h"
#include "tandem/train/scoring.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tandem::train {

/// What the micro-batches of a step leave behind, added up over those of all ranks by comm::MicroBatchSum: gradients,
/// changes of the model's buffers, and scores. Each micro-batch begins with the buffers that the step began with; the
/// step changes them by the mean of what its micro-batches would have changed, images having the same weight. Buffers
/// that are not floating are what this rank's first micro-batch makes them: rank 0's are the same on any number of
/// ranks, and those are kept (DistributedDataParallel::sync_buffers()). A buffer that no micro-batch changes keeps its
/// bits; one that a micro-batch changes from or to infinity becomes NaN.
class CanonicalStep {
 public:
  /// Of tensors that the model keeps. Throws Error as MicroBatchSum does.
  CanonicalStep(comm::ProcessGroup& group, std::vector<Tensor> parameters, const NamedTensors& buffers,
                int micro_batches, std::size_t metrics_of_own);

  /// Of all ranks' micro-batches, this rank's first.
  int first() const { return gradients_.first(); }

  /// Begins a step.
  void start();
  /// Gives the model its buffers back as the step began with them, and no gradients: before each micro-batch, and where
  /// a step is given up.
  void restore();
  /// This rank's next micro-batch was computed, and the parameters have its gradients. `share`: its part of the step's
  /// images.
  void end_micro_batch(double share, const Scores& scores);
  /// This rank's next micro-batch is empty.
  void skip_micro_batch();
  /// Gives the parameters and buffers what all ranks' micro-batches make of them; the scores of all. Collective.
  Scores finish();

 private:
  std::size_t metrics_of_own_;
  std::vector<Tensor> parameters_;
  std::vector<Tensor> buffers_;         // that are floating
  std::vector<Tensor> integers_;        // and those that are not
  std::vector<Tensor> buffers_before_;  // copies, of this step's begin
  std::vector<std::uint64_t> hashes_before_;
  std::vector<Tensor> integers_before_;
  std::vector<Tensor> integers_after_;  // this rank's first micro-batch; empty: none was computed
  comm::MicroBatchSum gradients_, changes_, scores_;
};

/// Adds up the scores of an evaluation's micro-batches.
class CanonicalScores {
 public:
  /// Throws Error as MicroBatchSum does.
  CanonicalScores(comm::ProcessGroup& group, int micro_batches, std::size_t metrics_of_own);

  /// Of this rank's micro-batches, over all ranks. Collective.
  Scores sum(const std::vector<Scores>& mine);

 private:
  std::size_t metrics_of_own_;
  comm::MicroBatchSum sum_;
};

}  // namespace tandem::train

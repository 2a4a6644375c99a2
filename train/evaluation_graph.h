// Batches of evaluations that a GPU is given as one unit of work.
#pragma once

#include "tandem/data/batch.h"
#include "tandem/data/deferred_batch.h"
#include "tandem/layers/module.h"
#include "tandem/train/recorded_work.h"
#include "tandem/train/running_scores.h"
#include "tandem/train/scoring.h"

#include <cstdint>
#include <string>
#include <vector>

namespace tandem::train {

/// Scores batches of one shape: forward, loss and sums of the first two one operation after another, those of the third
/// are recorded in a WorkGraph, and from then on each batch is one launch, with the bits that the operations would have
/// had. It is kept from one evaluation to the next, of any loader with batches of that shape, on any weights that stand
/// where the model's stand (as those of AveragedModel do). A batch of another shape, such as a smaller last one, and
/// one of modules with hooks, is computed by the operations. Functions of the program (of the scoring, or forward() of
/// its modules) are called for the recording, and not for launches: what they do must depend on tensors alone. Where
/// modes of modules or addresses have changed, the graph is dropped with a line, and the next batch is recorded anew.
/// Nothing is exchanged between ranks within a batch: each records on its own. Example:
///     #include "tandem/train/evaluation.h"
///     void watch(layers::Module& model, data::Loader& loader, comm::ProcessGroup& group) {
///       EvaluationGraph graph(model, Scoring(), CudaGraph::automatic);
///       for (int epoch = 0; epoch < 3; ++epoch) {
///         // ... training
///         const double accuracy = evaluate(graph, loader, group).metrics.accuracy();
///       }
///     }
class EvaluationGraph final : public RecordedWork {
 public:
  /// Batches until launches can begin: those that are computed by operations, and the one that is recorded.
  static constexpr std::int64_t kBatchesToRecord = 3;

  /// Of a model that outlives this. Where obstacle() is not "", with CudaGraph::on it throws Error, with `automatic` a
  /// line says it and all batches are computed by operations, as with `off`. `keeps_outputs`: output() is asked for.
  EvaluationGraph(layers::Module& model, Scoring scoring, CudaGraph mode, bool keeps_outputs = false);

  /// Why batches that are scored so cannot be recorded: the model is on the CPU, or there are metrics of the program's
  /// own. "": they probably can.
  static std::string obstacle(layers::Module& model, const Scoring& scoring);

  /// Begins an evaluation: nothing is added up, and modules and tensors of the model are looked at anew. What it has
  /// added before is forgotten.
  void start();

  /// Adds a batch that is not empty, and returns whether that was a launch. The caller has set modes of modules, and
  /// nothing is recorded for backward, as in evaluate(). Throws Error for labels outside of the classes, up to three
  /// batches later; where batches could not be recorded three times, with CudaGraph::on; and what functions throw.
  /// @{
  bool add(data::DeferredBatch batch);
  bool add(const data::Batch& batch) { return add(data::DeferredBatch(batch)); }
  /// @}

  /// What the model gave for the last batch, until the next one is added; with `keeps_outputs` alone.
  const Tensor& output() const { return output_; }

  /// Computes all batches from here on by operations, for a reason that a line tells; with CudaGraph::on throws Error.
  void refuse(std::string_view reason);

  /// What was added since start(); waits for it.
  const Scores& scores() const { return sums_.all(); }
  /// What it was made of.
  /// @{
  layers::Module& model() const { return model_; }
  const Scoring& scoring() const { return scoring_; }
  bool keeps_outputs() const { return keeps_outputs_; }
  /// @}

 private:
  void add_circumstances(std::vector<std::uintptr_t>& all) const override;
  void compute(const data::Batch& batch);
  void keep(const data::Batch& batch, const Tensor& output);

  layers::Module& model_;
  Scoring scoring_;
  RunningScores sums_;
  std::int64_t batches_ = 0;  // since start()
  bool keeps_outputs_;
  Tensor output_;        // of the last batch
  Tensor fixed_output_;  // that recorded work writes
};

}  // namespace tandem::train

// Work on batches that a GPU is given as one unit: what StepGraph and EvaluationGraph have in common.
#pragma once

#include "tandem/core/work_graph.h"
#include "tandem/data/batch.h"
#include "tandem/data/deferred_batch.h"
#include "tandem/layers/module.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tandem::train {

/// Whether work is recorded once and launched as CUDA graphs. `automatic`: where that can be done, and a line says
/// where it cannot; `on`: an Error there, at each batch.
enum class CudaGraph : std::uint8_t { off, automatic, on };

/// "off", "auto", "on". Throws Error for another text.
CudaGraph parse_cuda_graph(std::string_view name);
/// What parse_cuda_graph() reads.
std::string_view name_of(CudaGraph mode);

/// Does the same work for batches of one shape: for the first two one operation after another, which loads and chooses
/// kernels; the third is recorded in a WorkGraph, which from then on is launched for each. Recorded kernels read a
/// batch of their own, to which each one is copied, or in which its images are made. Where what they depend on beside
/// the numbers in tensors has changed (modes of modules, where tensors are, how products of f32 are computed, what the
/// tuner of convolutions was told), the graph is dropped with a line, and recorded anew.
class RecordedWork {
 public:
  /// What is done for a batch.
  using Work = std::function<void(const data::Batch&)>;

  virtual ~RecordedWork() = default;
  RecordedWork(const RecordedWork&) = delete;
  RecordedWork& operator=(const RecordedWork&) = delete;

  /// Forgets what was recorded, for what only the program knows. Two batches go before the next one that is recorded.
  void drop();
  /// Looks at the model anew: which modules and tensors it has. Each recording does.
  void look_at_model();

  /// Whether the work is recorded, and that for the next batch probably a launch of it.
  bool is_recorded() const { return graph_.has_value(); }
  /// Batches that were launches, so far.
  std::int64_t launches() const { return launches_; }
  /// How often the work was recorded.
  std::int64_t recordings() const { return recordings_; }

 protected:
  /// Of a model that outlives this. `subject` is what lines and errors are about: "the step".
  RecordedWork(layers::Module& model, CudaGraph mode, std::string_view subject);

  /// Calls work(batch), or launches what was recorded of it, and returns whether it did. `examples`: on which alone it
  /// depends, beside the shapes of the batch, whether it does.
  bool take_batch(data::DeferredBatch batch, std::int64_t examples, const Work& work);

  /// From here on nothing is recorded, for this reason; an Error with CudaGraph::on.
  void cancel(std::string_view reason);
  /// Throws that Error where nothing is recorded any more, and the program wants all to be.
  void require_recordable() const;
  /// Whether the batch has the shapes of those that are recorded.
  bool has_recorded_shapes(const data::Batch& batch) const {
    return data::DeferredBatch(batch).is_like(fixed_.tensors);
  }
  CudaGraph mode() const { return mode_; }
  bool is_cancelled() const { return failures_ >= kMostFailures; }

  /// Whether the next batch may be recorded, as far as the work is concerned.
  virtual bool may_record() const { return true; }
  /// Adds what the work depends on beside the model and the numbers in tensors.
  virtual void add_circumstances(std::vector<std::uintptr_t>& /*all*/) const {}
  /// On the device of the batches, before the recording. What it throws is why there is none.
  virtual void prepare_recording(Device /*device*/) {}
  /// Behind a recording, of which `mine` says why it failed, "" where it did not. Returns the same of all ranks.
  virtual std::string agree(const std::string& mine) const { return mine; }
  /// Behind one that has failed somewhere.
  virtual void abandon_recording() {}
  /// Before a launch of what an earlier batch has recorded. A NotRepeatable that it throws is why it is recorded anew.
  virtual void prepare_launch() {}
  /// Behind a launch, or what brings the batch to it, that has thrown: nothing of it was done, and the graph stays.
  virtual void abandon_launch() {}
  /// Behind a launch.
  virtual void finish_launch() {}

 private:
  static constexpr int kEagerBatches = 2;  // before the first recording: kernels are loaded and chosen, states are made
  static constexpr int kMostFailures = 3;  // in a row; then nothing is recorded any more

  std::vector<std::uintptr_t> circumstances() const;
  bool make_fixed(const data::Batch& batch, std::int64_t examples);
  bool is_ready(data::DeferredBatch& batch, std::int64_t examples);
  std::string try_to_record(const Work& work);
  void launch(const data::DeferredBatch& batch);
  void note_dropped(std::string_view reason);

  layers::Module& model_;
  CudaGraph mode_;
  std::string_view subject_;
  std::string final_reason_;  // why nothing is recorded any more
  std::vector<layers::Module*> modules_;
  std::vector<Tensor> tensors_;      // parameters and buffers
  data::Batch fixed_;                // that recorded work reads
  std::int64_t fixed_examples_ = 0;  // on all ranks
  std::optional<WorkGraph> graph_;
  std::vector<std::uintptr_t> recorded_circumstances_;
  int eager_batches_ = 0;  // since the graph was dropped, of fixed_'s shapes
  int failures_ = 0;       // since the last launch
  std::int64_t launches_ = 0, recordings_ = 0;
};

}  // namespace tandem::train

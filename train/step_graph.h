// Training steps that a GPU is given as one unit of work.
#pragma once

#include "tandem/comm/ddp/distributed_data_parallel.h"
#include "tandem/comm/process_group.h"
#include "tandem/data/batch.h"
#include "tandem/data/deferred_batch.h"
#include "tandem/layers/module.h"
#include "tandem/layers/random_state.h"
#include "tandem/optim/gradient_places.h"
#include "tandem/optim/optimizer.h"
#include "tandem/train/recorded_work.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tandem::train {

/// Takes steps of batches of one shape: the first two one operation after another, which loads and chooses kernels, the
/// third is recorded in a WorkGraph (with a loss scale, the one behind two that were taken of every parameter), and
/// from then on each is one launch, with the bits that the operations would have had. What a step does is what was
/// recorded: functions of the program are not called again, but for what WorkGraph::with_each_launch() was given. A
/// batch of another shape, and a step of modules with hooks, is computed by the operations; hooks of gradients
/// (autograd::on_gradient_ready()) are called for the recording alone. Where the modes of the modules, which parameters
/// are trained, or addresses have changed, the graph is dropped with a line, and the next step is recorded anew; behind
/// look_at_model() also where modules were added. What else a program changes under way (the rule of a loss scale,
/// another random state, Optimizer::scale_gradients()) is for drop(), and so is load_state_dict(). Gradients have
/// places of their own while this lives. Of several ranks, all take the same steps: what makes one of them record,
/// launch or drop is on all alike (hooks, modes, which parameters are trained, settings of the program), and they agree
/// on each recording. Example:
///     #include "tandem/autograd/functions.h"
///     void train(layers::Module& model, optim::Optimizer& optimizer, const std::vector<data::Batch>& batches) {
///       const auto random = std::make_shared<layers::RandomState>(1);
///       model.set_random_state(random);
///       StepGraph graph(model, optimizer, random, CudaGraph::automatic);
///       for (const data::Batch& batch : batches) {
///         random->advance();
///         graph.take(batch, [&](const data::Batch& given) {
///           optimizer.zero_grad();
///           autograd::backward(autograd::mse_loss(model(given.images), given.labels));
///           optimizer.step();
///         });
///       }
///     }
class StepGraph final : public RecordedWork {
 public:
  /// All parameters of the optimizer are on one GPU; all must outlive this, and the model draws its random numbers by
  /// `random_state`. With several ranks, a step exchanges gradients by `replicas`, whose recording_obstacle() is "",
  /// and the ranks agree by `group`; else both are null. Throws Error as GradientPlaces does.
  StepGraph(layers::Module& model, optim::Optimizer& optimizer, std::shared_ptr<layers::RandomState> random_state,
            CudaGraph mode, comm::ProcessGroup* group = nullptr, comm::DistributedDataParallel* replicas = nullptr);

  /// Takes a step of the batch: calls work(batch), or launches what was recorded of it, which reads a copy of the
  /// batch, or images that were made for it alone. `work` is a whole step, and does what it does to the batch it is
  /// given. `examples` are those of the batch on all ranks, on which alone it depends whether they launch. Returns
  /// whether it was a launch. Where `work` could not be recorded three times, steps are no launches any more; with
  /// CudaGraph::on throws Error then.
  bool take(data::DeferredBatch batch, std::int64_t examples, const std::function<void(const data::Batch&)>& work) {
    return take_batch(std::move(batch), examples, work);
  }
  /// The same of one rank.
  bool take(const data::Batch& batch, const std::function<void(const data::Batch&)>& work) {
    return take(data::DeferredBatch(batch), batch.count(), work);
  }

  /// Within `work`, behind backward: throws Error for a gradient that is elsewhere than it was.
  void check_places() const;

 private:
  bool may_record() const override;
  void add_circumstances(std::vector<std::uintptr_t>& all) const override;
  void prepare_recording(Device device) override;
  std::string agree(const std::string& mine) const override;
  void abandon_recording() override;
  void prepare_launch() override;
  void abandon_launch() override;
  void finish_launch() override;

  optim::Optimizer& optimizer_;
  std::shared_ptr<layers::RandomState> random_state_;
  std::uint32_t step_before_ = 0;  // of that: the last recording or launch, within which the work may count on
  comm::ProcessGroup* group_;      // of several ranks
  comm::DistributedDataParallel* replicas_;
  std::optional<optim::GradientPlaces> places_;  // with several ranks, the replicas have them
};

}  // namespace tandem::train

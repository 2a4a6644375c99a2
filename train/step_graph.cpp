// What a recorded training step depends on, and what the host does for it.
#include "tandem/train/step_graph.h"

#include "tandem/autograd/variable.h"
#include "tandem/core/describe.h"
#include "tandem/core/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace tandem::train {

StepGraph::StepGraph(layers::Module& model, optim::Optimizer& optimizer,
                     std::shared_ptr<layers::RandomState> random_state, CudaGraph mode, comm::ProcessGroup* group,
                     comm::DistributedDataParallel* replicas)
    : RecordedWork(model, mode, "the step"),
      optimizer_(optimizer),
      random_state_(std::move(random_state)),
      group_(group),
      replicas_(replicas) {
  if (replicas_ == nullptr) places_.emplace(optimizer.parameters());
}

void StepGraph::check_places() const {
  if (places_) return places_->check();
  for (const Tensor& parameter : optimizer_.parameters()) {
    const Tensor gradient = autograd::grad(parameter);
    require(!gradient.defined() || gradient.is_same(autograd::gradient_place(parameter)),
            "CUDA graph: the gradient of a parameter, {}, is not where its replicas exchange it", describe(parameter));
  }
}

/// A first step is another one, also behind steps that were skipped, and its successor makes tables anew.
bool StepGraph::may_record() const {
  constexpr std::int64_t kFewestSteps = 2;
  return optimizer_.fewest_steps() >= kFewestSteps;
}

void StepGraph::add_circumstances(std::vector<std::uintptr_t>& all) const {
  for (const Tensor& parameter : optimizer_.parameters()) {
    const Tensor place = autograd::gradient_place(parameter);
    all.push_back(autograd::requires_grad(parameter) ? 1 : 0);
    all.push_back(place.defined() ? reinterpret_cast<std::uintptr_t>(place.raw_data()) : 0);
  }
}

void StepGraph::prepare_recording(Device device) {
  step_before_ = random_state_->step();
  optimizer_.prepare_recording();
  random_state_->step_on(device);  // by its current stream
}

/// What a rank gives, with its number: the first one's; "" where none gives anything. Collective.
std::string StepGraph::agree(const std::string& mine) const {
  if (group_ == nullptr) return mine;
  const std::vector<std::string> all = group_->all_gather_bytes(mine);
  const auto first = std::ranges::find_if(all, [](const std::string& reason) { return !reason.empty(); });
  return first == all.end() ? "" : fmt::format("on rank {}, {}", first - all.begin(), *first);
}

void StepGraph::abandon_recording() {
  optimizer_.abandon_recording();
  if (replicas_ != nullptr) replicas_->abandon_step();
  random_state_->set_step(step_before_);
}

void StepGraph::prepare_launch() {
  step_before_ = random_state_->step();
  random_state_->upload();
  optimizer_.prepare_replay();
}

void StepGraph::abandon_launch() {
  optimizer_.abandon_launch();
  random_state_->set_step(step_before_);  // the launch may be that of a recording, which has counted draws
}

void StepGraph::finish_launch() {
  if (replicas_ != nullptr) replicas_->finish_launched();
}

}  // namespace tandem::train

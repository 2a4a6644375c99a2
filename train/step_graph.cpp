// When a step is recorded, launched, and when it is neither.
#include "tandem/train/step_graph.h"

#include "tandem/autograd/variable.h"
#include "tandem/core/describe.h"
#include "tandem/core/error.h"
#include "tandem/core/memory.h"
#include "tandem/kernels/float32_products.h"
#include "tandem/kernels/notice.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <utility>

namespace tandem::train {
namespace {

constexpr int kEagerSteps = 2;    // before the first recording: kernels are loaded and chosen, states are made
constexpr int kMostFailures = 3;  // in a row; then steps stay eager

std::vector<layers::Module*> modules_of(layers::Module& model) {
  std::vector<layers::Module*> modules;
  for (const auto& [name, module] : model.named_modules()) modules.push_back(module);
  return modules;
}

bool are_alike(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && a.dtype() == b.dtype() && a.device() == b.device() && a.strides() == b.strides();
}

}  // namespace

CudaGraph parse_cuda_graph(std::string_view name) {
  for (const CudaGraph mode : {CudaGraph::off, CudaGraph::automatic, CudaGraph::on})
    if (name_of(mode) == name) return mode;
  fail("cuda graph '{}': choose auto, on or off", name);
}

std::string_view name_of(CudaGraph mode) {
  return mode == CudaGraph::off ? "off" : mode == CudaGraph::on ? "on" : "auto";
}

StepGraph::StepGraph(layers::Module& model, optim::Optimizer& optimizer,
                     std::shared_ptr<layers::RandomState> random_state, CudaGraph mode, comm::ProcessGroup* group,
                     comm::DistributedDataParallel* replicas)
    : model_(model),
      optimizer_(optimizer),
      random_state_(std::move(random_state)),
      mode_(mode),
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

std::vector<std::uintptr_t> StepGraph::circumstances() const {
  std::vector<std::uintptr_t> all{static_cast<std::uintptr_t>(kernels::float32_products())};
  for (const layers::Module* const module : modules_) all.push_back(module->training() ? 1 : 0);
  for (const Tensor& parameter : optimizer_.parameters()) all.push_back(autograd::requires_grad(parameter) ? 1 : 0);
  for (const Tensor& tensor : tensors_) all.push_back(reinterpret_cast<std::uintptr_t>(tensor.raw_data()));
  for (const Tensor& parameter : optimizer_.parameters()) {
    const Tensor place = autograd::gradient_place(parameter);
    all.push_back(place.defined() ? reinterpret_cast<std::uintptr_t>(place.raw_data()) : 0);
  }
  return all;
}

bool StepGraph::has_shapes_of_fixed(const data::Batch& batch) const {
  return batch.tensors.size() == fixed_.tensors.size() && batch.count() == fixed_.count() &&
         std::ranges::equal(batch.tensors, fixed_.tensors, are_alike);
}

void StepGraph::copy_to_fixed(const data::Batch& batch) {
  for (std::size_t i = 0; i < batch.tensors.size(); ++i) fixed_.tensors[i].copy_from_async(batch.tensors[i]);
}

void StepGraph::drop() {
  graph_.reset();
  eager_steps_ = 0;
}

void StepGraph::note_dropped(std::string_view reason) {
  drop();
  if (++failures_ < kMostFailures)
    return kernels::notice(fmt::format("CUDA graph: the step is recorded anew: {}", reason));
  require(mode_ != CudaGraph::on, "CUDA graph: the step cannot be recorded: {}", reason);
  kernels::notice(fmt::format("CUDA graph: off from here on, the step cannot be recorded: {}", reason));
}

/// Whether this step is to be a launch. The shapes of the first batch are those of the graph.
bool StepGraph::is_ready(const data::Batch& batch, std::int64_t examples) {
  if (failures_ >= kMostFailures) return false;
  if (!graph_ && examples > fixed_examples_) {  // that may have been an epoch's last, smaller one
    fixed_ = {};
    eager_steps_ = 0;
  }
  if (fixed_.tensors.empty()) {
    const MemoryTagScope scope(MemoryTag::data);
    fixed_ = batch;
    fixed_examples_ = examples;
    for (Tensor& tensor : fixed_.tensors) {
      const Tensor like = tensor;
      tensor = empty_like(like);
      if (tensor.strides() != like.strides() || tensor.device().type != DeviceType::cuda) {
        fixed_ = {};
        failures_ = kMostFailures - 1;
        note_dropped("a tensor of the batches is not dense, or not on the GPU");
        return false;
      }
    }
    fixed_.images = fixed_.tensors.front();
    fixed_.labels = fixed_.tensors.back();
    modules_ = modules_of(model_);
    tensors_.clear();
    for (const NamedTensors& tensors : {model_.named_parameters(), model_.named_buffers()})
      for (const auto& [name, tensor] : tensors) tensors_.push_back(tensor);
  }
  if (examples != fixed_examples_ || !has_shapes_of_fixed(batch)) return false;
  if (eager_steps_ < kEagerSteps) {
    ++eager_steps_;
    return false;
  }
  // A first step is another one, also behind steps that were skipped, and its successor makes tables anew.
  if (!graph_ && optimizer_.fewest_steps() < kEagerSteps) return false;
  // Hooks would be called once, at the recording.
  return std::ranges::none_of(modules_, [](const auto* module) { return module->is_observed(); });
}

void StepGraph::record(const std::function<void(const data::Batch&)>& work) {
  optimizer_.prepare_recording();
  random_state_->step_on(fixed_.tensors.front().device());  // by its current stream
  recorded_circumstances_ = circumstances();
  graph_.emplace(fixed_.tensors.front().device(), [&] { work(fixed_); });
  ++recordings_;
}

/// What a rank gives, with its number: the first one's; "" where none gives anything. Collective.
std::string StepGraph::reason_of_any_rank(const std::string& mine) const {
  if (group_ == nullptr) return mine;
  const std::vector<std::string> all = group_->all_gather_bytes(mine);
  const auto first = std::ranges::find_if(all, [](const std::string& reason) { return !reason.empty(); });
  return first == all.end() ? "" : fmt::format("on rank {}, {}", first - all.begin(), *first);
}

/// Returns why the step could not be recorded, on any rank; "" where it was.
std::string StepGraph::try_to_record(const std::function<void(const data::Batch&)>& work) {
  std::string mine;
  std::exception_ptr foreign;
  try {
    record(work);
  } catch (const Error& error) {
    mine = error.what();
  } catch (...) {  // of the program, which is to see it; the other ranks are told first
    mine = "the work throws an exception of its own";
    foreign = std::current_exception();
  }
  std::string reason = reason_of_any_rank(mine);
  if (reason.empty()) return "";
  graph_.reset();
  optimizer_.abandon_recording();
  if (replicas_ != nullptr) replicas_->abandon_step();
  random_state_->set_step(random_state_->step());
  if (foreign) std::rethrow_exception(foreign);
  return reason;
}

bool StepGraph::take(const data::Batch& batch, std::int64_t examples,
                     const std::function<void(const data::Batch&)>& work) {
  if (!is_ready(batch, examples)) {
    work(batch);
    return false;
  }
  std::string reason;
  const bool is_replay = graph_.has_value();
  if (graph_ && recorded_circumstances_ != circumstances())
    reason = "a module's mode, what is trained, or where a tensor of the model is has changed";
  if (graph_ && reason.empty()) {
    try {
      random_state_->upload();
      optimizer_.prepare_replay();
    } catch (const Error& error) {
      reason = error.what();
    }
  } else if (!graph_) {
    reason = try_to_record(work);
  }
  if (!reason.empty()) {
    note_dropped(reason);
    work(batch);
    eager_steps_ = kEagerSteps;  // states are there: the next step is recorded
    return false;
  }
  copy_to_fixed(batch);
  graph_->launch();
  if (replicas_ != nullptr) replicas_->finish_launched();
  ++launches_;
  if (is_replay) failures_ = 0;
  return true;
}

}  // namespace tandem::train

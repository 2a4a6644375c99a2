// When work is recorded, launched, and when it is neither.
#include "tandem/train/recorded_work.h"

#include "tandem/core/error.h"
#include "tandem/core/memory.h"
#include "tandem/core/not_repeatable.h"
#include "tandem/kernels/conv/tuning/tuner.h"
#include "tandem/kernels/float32_products.h"
#include "tandem/kernels/notice.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <utility>

namespace tandem::train {

CudaGraph parse_cuda_graph(std::string_view name) {
  for (const CudaGraph mode : {CudaGraph::off, CudaGraph::automatic, CudaGraph::on})
    if (name_of(mode) == name) return mode;
  fail("cuda graph '{}': choose auto, on or off", name);
}

std::string_view name_of(CudaGraph mode) {
  return mode == CudaGraph::off ? "off" : mode == CudaGraph::on ? "on" : "auto";
}

RecordedWork::RecordedWork(layers::Module& model, CudaGraph mode, std::string_view subject)
    : model_(model), mode_(mode), subject_(subject) {
  if (mode == CudaGraph::off) failures_ = kMostFailures;
}

void RecordedWork::look_at_model() {
  modules_.clear();
  for (const auto& [name, module] : model_.named_modules()) modules_.push_back(module);
  tensors_.clear();
  for (const NamedTensors& tensors : {model_.named_parameters(), model_.named_buffers()})
    for (const auto& [name, tensor] : tensors) tensors_.push_back(tensor);
}

std::vector<std::uintptr_t> RecordedWork::circumstances() const {
  std::vector<std::uintptr_t> all{static_cast<std::uintptr_t>(kernels::float32_products()),
                                  static_cast<std::uintptr_t>(kernels::conv_tuner().generation())};
  for (const layers::Module* const module : modules_) all.push_back(module->training() ? 1 : 0);
  for (const Tensor& tensor : tensors_) all.push_back(reinterpret_cast<std::uintptr_t>(tensor.raw_data()));
  add_circumstances(all);
  return all;
}

void RecordedWork::drop() {
  graph_.reset();
  eager_batches_ = 0;
}

void RecordedWork::cancel(std::string_view reason) {
  failures_ = kMostFailures - 1;
  note_dropped(reason);
}

void RecordedWork::note_dropped(std::string_view reason) {
  drop();
  if (++failures_ < kMostFailures)
    return kernels::notice(fmt::format("CUDA graph: {} is recorded anew: {}", subject_, reason));
  final_reason_ = reason;
  require_recordable();
  kernels::notice(fmt::format("CUDA graph: off from here on, {} cannot be recorded: {}", subject_, reason));
}

void RecordedWork::require_recordable() const {
  if (mode_ != CudaGraph::on || !is_cancelled()) return;
  fail("CUDA graph: {} cannot be recorded: {}", subject_, final_reason_);
}

/// A batch like this one for recorded work; false where it cannot be.
bool RecordedWork::make_fixed(const data::Batch& batch, std::int64_t examples) {
  if (batch.tensors.empty()) return false;  // of a stream, nothing for this rank
  const MemoryTagScope scope(MemoryTag::data);
  fixed_ = batch;
  fixed_examples_ = examples;
  for (Tensor& tensor : fixed_.tensors) {
    const Tensor like = tensor;
    tensor = empty_like(like);
    if (tensor.strides() != like.strides() || tensor.device().type != DeviceType::cuda) {
      fixed_ = {};
      cancel("a tensor of the batches is not dense, or not on the GPU");
      return false;
    }
  }
  fixed_.images = fixed_.tensors.front();
  fixed_.labels = fixed_.tensors.back();
  return true;
}

/// Whether the work for this batch is to be a launch. The shapes of the first batch are those of the graph.
bool RecordedWork::is_ready(data::DeferredBatch& batch, std::int64_t examples) {
  require_recordable();
  if (is_cancelled()) return false;
  if (!graph_ && examples > fixed_examples_) {  // that may have been an epoch's last, smaller one
    fixed_ = {};
    eager_batches_ = 0;
  }
  if (fixed_.tensors.empty() && !make_fixed(batch.whole(), examples)) return false;
  if (examples != fixed_examples_ || batch.count() != fixed_.count() || !batch.is_like(fixed_.tensors)) return false;
  if (eager_batches_ < kEagerBatches) {
    ++eager_batches_;
    return false;
  }
  if (!graph_ && !may_record()) return false;
  if (!graph_) look_at_model();  // the program may have added modules since
  // Hooks would be called once, at the recording.
  return std::ranges::none_of(modules_, [](const auto* module) { return module->is_observed(); });
}

/// Returns why the work could not be recorded, on any rank; "" where it was.
std::string RecordedWork::try_to_record(const Work& work) {
  const Device device = fixed_.tensors.front().device();
  std::string mine;
  std::exception_ptr foreign;
  try {
    prepare_recording(device);
    recorded_circumstances_ = circumstances();
    graph_.emplace(device, [&] { work(fixed_); });
  } catch (const Error& error) {
    mine = error.what();
  } catch (...) {  // of the program, which is to see it; the other ranks are told first
    mine = "the work throws an exception of its own";
    foreign = std::current_exception();
  }
  std::string reason = agree(mine);
  if (reason.empty()) {
    ++recordings_;
    return "";
  }
  graph_.reset();
  abandon_recording();
  if (foreign) std::rethrow_exception(foreign);
  return reason;
}

void RecordedWork::launch(const data::DeferredBatch& batch) {
  try {
    batch.write_to(fixed_.tensors);
    graph_->launch();
  } catch (...) {
    abandon_launch();
    throw;
  }
  finish_launch();
  ++launches_;
}

bool RecordedWork::take_batch(data::DeferredBatch batch, std::int64_t examples, const Work& work) {
  if (!is_ready(batch, examples)) {
    work(batch.whole());
    return false;
  }
  std::string reason;
  const bool is_replay = graph_.has_value();
  if (graph_ && recorded_circumstances_ != circumstances())
    reason = "a module's mode, what is trained, where a tensor of the model is, or how kernels are chosen has changed";
  if (graph_ && reason.empty()) {
    try {
      prepare_launch();
    } catch (const NotRepeatable& error) {
      reason = error.what();
    }
  } else if (!graph_) {
    reason = try_to_record(work);
  }
  if (!reason.empty()) {
    note_dropped(reason);
    work(batch.whole());
    eager_batches_ = kEagerBatches;  // states are there: the next batch is recorded
    return false;
  }
  launch(batch);
  if (is_replay) failures_ = 0;
  return true;
}

}  // namespace tandem::train

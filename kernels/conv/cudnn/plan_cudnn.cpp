// The choice among cuDNN's engines: those that its heuristics advise and that are exact and deterministic.
#include "kernels/conv/cudnn/plan.h"

#include "kernels/conv/cudnn/graph.h"

#include <algorithm>

namespace tandem::kernels::cudnn {
namespace {

std::vector<Descriptor> made(const Functions& functions, cudnnBackendDescriptorType_t kind, std::int64_t count) {
  std::vector<Descriptor> descriptors;
  for (std::int64_t i = 0; i < count; ++i) descriptors.emplace_back(functions, kind);
  return descriptors;
}

/// Engines with their settings, the most promising first.
std::vector<Descriptor> configurations(const Functions& functions, const Descriptor& graph,
                                       cudnnBackendHeurMode_t mode) {
  Descriptor heuristic(functions, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristic.refer(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
  heuristic.set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, mode);
  std::vector<Descriptor> all;
  if (!heuristic.try_finalize()) return all;
  const std::int64_t count = heuristic.read(CUDNN_ATTR_ENGINEHEUR_RESULTS, all);
  all = made(functions, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, count);
  const std::int64_t filled = heuristic.read(CUDNN_ATTR_ENGINEHEUR_RESULTS, all);
  while (static_cast<std::int64_t>(all.size()) > filled) all.pop_back();
  return all;
}

std::vector<cudnnBackendNumericalNote_t> notes_of(const Functions& functions, const Descriptor& configuration) {
  std::vector<Descriptor> engine = made(functions, CUDNN_BACKEND_ENGINE_DESCRIPTOR, 1);
  configuration.read(CUDNN_ATTR_ENGINECFG_ENGINE, engine);
  return engine.front().read<cudnnBackendNumericalNote_t>(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                                                          CUDNN_NUMERICAL_NOTE_TYPE_COUNT);
}

}  // namespace

bool breaks_promises(const std::vector<cudnnBackendNumericalNote_t>& notes, DType dtype) {
  return std::any_of(notes.begin(), notes.end(), [&](cudnnBackendNumericalNote_t note) {
    switch (note) {
      case CUDNN_NUMERICAL_NOTE_TENSOR_CORE:
        return dtype == DType::f32;  // it would be TF32
      case CUDNN_NUMERICAL_NOTE_STRICT_NAN_PROP:
        return false;
      default:  // smaller inputs, sums in halves, FFT, Winograd, no fixed order; and what later versions may have
        return true;
    }
  });
}

Plans::Plans(const Functions& functions, cudnnHandle_t handle, const ConvTask& task)
    : functions_(functions), dtype_(task.dtype) {
  try {
    graph_.emplace(make_graph(functions, handle, task));
  } catch (const Error&) {
    return;  // no such graph: the answer is no, not a failure
  }
  for (const cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK})
    for (Descriptor& configuration : configurations(functions, *graph_, mode))
      configurations_.push_back(std::move(configuration));
}

const Plan* Plans::at(std::size_t index, cudnnHandle_t handle) {
  while (plans_.size() <= index && tried_ < configurations_.size()) {
    const Descriptor& configuration = configurations_[tried_++];
    if (breaks_promises(notes_of(functions_, configuration), dtype_)) continue;
    Descriptor execution(functions_, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    execution.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, handle);
    execution.refer(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration);
    if (!execution.try_finalize()) continue;
    const auto bytes =
        execution.read<std::int64_t>(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1).at(0);
    plans_.push_back(std::make_unique<Plan>(Plan{std::move(execution), bytes}));
  }
  return index < plans_.size() ? plans_[index].get() : nullptr;
}

}  // namespace tandem::kernels::cudnn

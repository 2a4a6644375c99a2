// Masters by the names of their parameters.
#include "train/weights.h"

#include <algorithm>

namespace tandem::train {

namespace {

/// Undefined for a parameter without.
Tensor master_of(const optim::Optimizer& optimizer, const Tensor& parameter) {
  const auto& parameters = optimizer.parameters();
  const auto found =
      std::find_if(parameters.begin(), parameters.end(), [&](const Tensor& other) { return other.is_same(parameter); });
  return found == parameters.end() ? Tensor() : optimizer.master(static_cast<std::size_t>(found - parameters.begin()));
}

layers::NamedTensors masters_by_name(const layers::Module& model, const optim::Optimizer& optimizer) {
  layers::NamedTensors masters;
  for (const auto& [name, parameter] : model.named_parameters()) {
    const Tensor master = master_of(optimizer, parameter);
    if (master.defined()) masters.emplace_back(name, master);
  }
  return masters;
}

}  // namespace

layers::NamedTensors full_state_dict(const layers::Module& model, const optim::Optimizer& optimizer) {
  layers::NamedTensors state = model.state_dict();
  for (const auto& master : masters_by_name(model, optimizer)) {
    std::find_if(state.begin(), state.end(), [&](const auto& e) { return e.first == master.first; })->second =
        master.second;
  }
  return state;
}

layers::NamedTensors parameters_and_masters(const layers::Module& model, const optim::Optimizer& optimizer) {
  layers::NamedTensors result = model.named_parameters();
  for (const auto& [name, master] : masters_by_name(model, optimizer)) result.emplace_back(name + ".master", master);
  return result;
}

}  // namespace tandem::train

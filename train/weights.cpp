// Masters by the names of their parameters.
#include "tandem/train/weights.h"

#include "tandem/core/error.h"
#include "tandem/train/tensor_hashes.h"

#include <stdlib.h>  // mkdtemp

#include <algorithm>
#include <filesystem>
#include <system_error>

namespace tandem::train {

namespace {

/// Undefined for a parameter without.
Tensor master_of(const optim::Optimizer& optimizer, const Tensor& parameter) {
  const auto& parameters = optimizer.parameters();
  const auto found =
      std::find_if(parameters.begin(), parameters.end(), [&](const Tensor& other) { return other.is_same(parameter); });
  return found == parameters.end() ? Tensor() : optimizer.master(static_cast<std::size_t>(found - parameters.begin()));
}

NamedTensors masters_by_name(const layers::Module& model, const optim::Optimizer& optimizer) {
  NamedTensors masters;
  for (const auto& [name, parameter] : model.named_parameters()) {
    const Tensor master = master_of(optimizer, parameter);
    if (master.defined()) masters.emplace_back(name, master);
  }
  return masters;
}

}  // namespace

NamedTensors full_state_dict(const layers::Module& model, const optim::Optimizer& optimizer) {
  NamedTensors state = model.state_dict();
  for (const auto& master : masters_by_name(model, optimizer)) {
    std::find_if(state.begin(), state.end(), [&](const auto& e) { return e.first == master.first; })->second =
        master.second;
  }
  return state;
}

NamedTensors parameters_and_masters(const layers::Module& model, const optim::Optimizer& optimizer) {
  NamedTensors result = model.named_parameters();
  for (const auto& [name, master] : masters_by_name(model, optimizer)) result.emplace_back(name + ".master", master);
  return result;
}

layers::Metadata load_weights(layers::Module& model, const std::string& name, const std::string& path) {
  const layers::SafetensorsFile file = read_hashed(path, HashesAre::checked_where_there).file;
  const auto theirs = file.metadata.find("model");
  require(theirs == file.metadata.end() || theirs->second == name,
          "{0}: holds weights of the model {1}, not of {2}: choose model {1}, or other weights", path,
          theirs == file.metadata.end() ? "" : theirs->second, name);
  try {
    model.load_state_dict(file.tensors);
  } catch (const layers::IncompatibleStateError& error) {
    fail("{}: does not fit {}: choose the model and its options that these weights are of; {}", path, name,
         to_string(error.refused()));
  }
  return file.metadata;
}

SavedWeights save_weights(const std::string& path, const NamedTensors& tensors, const layers::Metadata& metadata) {
  std::string problem;
  try {
    write_hashed(path, tensors, metadata);
    return {path, ""};
  } catch (const Error& error) {
    problem = error.what();
  }
  namespace fs = std::filesystem;
  std::error_code none;
  const fs::path name = fs::path(path).has_filename() ? fs::path(path).filename() : fs::path("weights.safetensors");
  for (const fs::path& place : {fs::current_path(none), fs::temp_directory_path(none)}) {
    std::string folder = (place / "tandem-weights-XXXXXX").string();  // new: nothing that is there is touched
    if (place.empty() || ::mkdtemp(folder.data()) == nullptr) continue;
    const std::string other = (fs::path(folder) / name).string();
    try {
      write_hashed(other, tensors, metadata);
      return {other, problem};
    } catch (const Error&) {
      fs::remove(folder, none);
    }
  }
  return {"", problem};
}

}  // namespace tandem::train

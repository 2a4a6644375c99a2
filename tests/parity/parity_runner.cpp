// Runs parity cases: for each *.case.safetensors of a folder, writes what this framework computes to
// *.result.safetensors. The cases, and the comparison with PyTorch, are run_parity.py's.
#include "tests/parity/parity_runner.h"

#include "tandem/core/parallel.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>

namespace tandem::parity {

Tensor CaseFile::find(const std::string& name) const {
  const auto found =
      std::find_if(tensors.begin(), tensors.end(), [&](const auto& entry) { return entry.first == name; });
  return found == tensors.end() ? Tensor() : found->second;
}

Tensor CaseFile::at(const std::string& name) const {
  const Tensor tensor = find(name);
  require(tensor.defined(), "parity case {}: no tensor '{}'", stem, name);
  return tensor;
}

namespace {

constexpr std::string_view kCaseSuffix = ".case.safetensors";

NamedTensors run(const CaseFile& file) {
  const std::string kind = file.description.at("kind");
  if (kind == "op") {
    return file.description.at("op").get<std::string>().starts_with("layer.") ? run_layer(file) : run_op(file);
  }
  if (kind == "optimizer") return run_optimizer(file);
  if (kind == "model") return run_model(file);
  if (kind == "views") return run_views(file);
  if (kind == "whitening") return run_whitening(file);
  if (kind == "single_steps") return run_single_steps(file);
  require(kind == "training", "unknown kind of parity case '{}'", kind);
  return run_training(file);
}

void run_file(const std::string& path) {
  auto [tensors, metadata] = layers::read_safetensors(path);
  const std::string stem = path.substr(0, path.size() - kCaseSuffix.size());
  NamedTensors results;
  layers::Metadata notes;
  try {
    results = run({json::parse(metadata.at("case")), std::move(tensors), stem});
  } catch (const std::exception& error) {
    notes["error"] = error.what();
  }
  layers::write_safetensors(stem + ".result.safetensors", results, notes);
}

}  // namespace

}  // namespace tandem::parity

int main(int argc, char** argv) {
  try {
    tandem::require(argc == 2 || argc == 3, "usage: parity_runner FOLDER [THREADS]");
    if (argc == 3) tandem::set_num_threads(std::stoi(argv[2]));
    std::vector<std::string> paths;
    for (const auto& entry : std::filesystem::directory_iterator(argv[1])) {
      if (entry.path().string().ends_with(tandem::parity::kCaseSuffix)) paths.push_back(entry.path());
    }
    std::sort(paths.begin(), paths.end());
    for (const std::string& path : paths) tandem::parity::run_file(path);
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "parity_runner: {}\n", error.what());
    return 2;
  }
}

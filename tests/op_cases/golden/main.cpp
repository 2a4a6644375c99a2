// op_table_recorder: writes down what the GPU computes for the op table, or compares it with what was written down.
#include "tandem/core/device_query.h"
#include "tests/op_cases/golden/golden_recording.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <filesystem>

namespace tandem::test {
namespace {

constexpr int kAgrees = 0, kDiffers = 1, kBadInput = 2, kSkipped = 77;
constexpr std::size_t kShown = 20;

/// The recordings in a folder, by name; a file stands for itself.
std::vector<std::string> recordings_at(const std::string& path) {
  if (!std::filesystem::is_directory(path)) return {path};
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(path)) {
    if (entry.path().extension() == ".json") files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

int record(const std::string& path, Device device, const std::string& command) {
  Recording recording = record_op_table(device);
  recording.recorded_by["command"] = command;
  write_recording(path, recording);
  fmt::print("{}: {} calls on {}, {} KiB\n", path, recording.calls.size(), recording.recorded_by.at("device"),
             std::filesystem::file_size(path) / 1024);
  return kAgrees;
}

int compare(const std::string& path, Device device) {
  const Recording recording = read_recording(path);
  std::vector<std::string> differences;
  try {
    differences = replay(recording, device);
  } catch (const Error& error) {
    fail("{}: {}", path, error.what());
  }
  fmt::print("{}: {} calls, {} results differ", path, recording.calls.size(), differences.size());
  for (const auto& [key, value] : recording.recorded_by) fmt::print("; {} {}", key, value);
  fmt::print("\n");
  for (std::size_t i = 0; i < std::min(differences.size(), kShown); ++i) fmt::print("  {}\n", differences[i]);
  return differences.empty() ? kAgrees : kDiffers;
}

int run(int argc, char** argv) {
  std::string record_path, replay_path;
  CLI::App app("Records what the GPU computes for the op table, or compares it with a recording");
  app.add_option("--record", record_path, "File to write");
  app.add_option("--replay", replay_path, "Recording to compare with, or a folder of them");
  app.require_option(1);
  app.footer("Exit code: 0 agrees, 1 differs, 2 bad input, 77 no GPU, or nothing to compare with");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kAgrees : kBadInput;
  }
  const std::string no_gpu = cuda_unavailable_reason();
  const std::vector<std::string> paths = replay_path.empty() ? std::vector<std::string>() : recordings_at(replay_path);
  if (!no_gpu.empty() || (record_path.empty() && paths.empty())) {
    fmt::print("skipped, {}\n", no_gpu.empty() ? "no recordings in " + replay_path : no_gpu);
    return kSkipped;
  }
  const Device device{DeviceType::cuda, 0};
  if (!record_path.empty()) return record(record_path, device, "op_table_recorder --record " + record_path);
  int result = kAgrees;
  for (const std::string& path : paths) result = std::max(result, compare(path, device));
  return result;
}

}  // namespace
}  // namespace tandem::test

int main(int argc, char** argv) {
  try {
    return tandem::test::run(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "op_table_recorder: {}\n", error.what());
    return 2;
  }
}

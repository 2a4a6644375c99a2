// One JSON object, replaced as a whole.
#include "tandem/train/environment_file.h"

#include "tandem/comm/launch/launch.h"
#include "tandem/core/device_query.h"
#include "tandem/core/error.h"
#include "tandem/layers/file.h"
#include "tandem/train/parse_json.h"
#include "tandem/train/process_info.h"

#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

namespace tandem::train {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array kStates{RunState::running, RunState::finished, RunState::stopped, RunState::failed};

Json devices() {
  Json list = Json::array();
  for (const DeviceDescription& device : list_devices()) {
    Json entry{{"device", name_of(device.device)}, {"name", device.name}, {"units", device.units}};
    if (device.memory_bytes > 0) entry["memory_bytes"] = device.memory_bytes;
    if (!device.capability.empty()) entry["capability"] = device.capability;
    list.push_back(std::move(entry));
  }
  return list;
}

}  // namespace

std::string_view name_of(RunState state) {
  switch (state) {
    case RunState::running:
      return "running";
    case RunState::finished:
      return "finished";
    case RunState::stopped:
      return "stopped";
    case RunState::failed:
      return "failed";
  }
  return "";
}

RunEnvironment this_environment(std::vector<std::string> command, std::vector<std::string> places) {
  std::error_code unknown;
  return {.command = std::move(command),
          .folder = std::filesystem::current_path(unknown).string(),
          .launcher = comm::detect_launch(environment_variable).launcher,
          .places = std::move(places),
          .git = git_state(".")};
}

EnvironmentFile::EnvironmentFile(std::string path, RunRecord run, RunEnvironment environment)
    : path_(std::move(path)), run_(std::move(run)), environment_(std::move(environment)) {
  write(RunState::running, std::nullopt);
}

EnvironmentFile::~EnvironmentFile() {
  if (has_ended_) return;
  try {
    write(RunState::failed, std::nullopt);
  } catch (const std::exception&) {  // what ended the run says more
    return;
  }
}

void EnvironmentFile::end(RunState state, int exit_code) {
  has_ended_ = true;
  write(state, exit_code);
}

void EnvironmentFile::write(RunState state, std::optional<int> exit_code) const {
  Json json{{"state", name_of(state)}, {"started", run_.started}};
  if (state != RunState::running) json["ended"] = utc_time();
  if (exit_code) json["exit_code"] = *exit_code;
  json["model"] = run_.model;
  json["dataset"] = run_.dataset;
  json["command"] = environment_.command;
  json["folder"] = environment_.folder;
  if (!environment_.launcher.empty()) json["launcher"] = environment_.launcher;
  if (environment_.git) json["git"] = {{"commit", environment_.git->commit}, {"dirty", environment_.git->is_dirty}};
  json["host"] = run_.host;
  json["ranks"] = environment_.places;
  json["threads"] = run_.threads;
  json["backend"] = run_.backend;
  if (!run_.network.empty()) json["simulated_network"] = run_.network;
  json["devices"] = devices();
  for (const auto& [name, version] : run_.versions) json["versions"][name] = version;
  // Arguments and paths may hold bytes that are no UTF-8.
  layers::write_file(path_, json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

std::optional<RunStatus> read_run_status(const std::string& path) {
  constexpr std::uintmax_t kMostBytes = 4 << 20;
  std::error_code unknown;
  if (const auto size = std::filesystem::file_size(path, unknown); unknown || size > kMostBytes) return std::nullopt;
  std::ifstream file(path, std::ios::binary);
  const Json json = parse_json(std::string{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()});
  const auto text = [&](const char* name) {
    return json.is_object() && json.contains(name) && json[name].is_string() ? json[name].get<std::string>() : "";
  };
  for (const RunState state : kStates) {
    if (text("state") == name_of(state)) return RunStatus{state, text("model"), text("dataset")};
  }
  return std::nullopt;
}

}  // namespace tandem::train

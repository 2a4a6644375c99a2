// environment.json: where and with what a run was made, and how it ended.
#pragma once

#include "tandem/train/git_state.h"
#include "tandem/train/records.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tandem::train {

/// How far a run is. One that was killed stays `running`.
enum class RunState : std::uint8_t { running, finished, stopped, failed };

/// "running", "finished", "stopped" (it can go on later) or "failed".
std::string_view name_of(RunState state);

/// What a RunRecord does not have.
struct RunEnvironment {
  std::vector<std::string> command;  ///< as main() gets it
  std::string folder;                ///< the working directory
  std::string launcher = {};         ///< that started the ranks: Launch::launcher
  std::vector<std::string> places;   ///< of each rank: "host, device"
  std::optional<GitState> git;       ///< of the working directory
};

/// The environment of this process: its working directory, the checkout that it is in, and its launcher.
RunEnvironment this_environment(std::vector<std::string> command, std::vector<std::string> places);

/// A run's environment.json: versions, host, processor, devices, ranks, what started them, command line, working
/// directory, commit, when it was started and ended, state and exit code. Written when the object is made, as running,
/// and when the run ends. Example:
///     #include "tandem/train/process_info.h"
///     #include <filesystem>
///     const auto folder = std::filesystem::temp_directory_path();
///     const std::string path = (folder / "environment_example.json").string();
///     RunRecord run;
///     run.versions = build_versions();
///     {
///       EnvironmentFile file(path, run, this_environment({"train", "--lr", "0.1"}, {host_name() + ", cpu"}));
///       file.end(RunState::finished, 0);
///     }
///     const bool has_finished = read_run_status(path)->state == RunState::finished;  // true
///     std::filesystem::remove(path);
class EnvironmentFile {
 public:
  /// Throws Error where the file cannot be written.
  EnvironmentFile(std::string path, RunRecord run, RunEnvironment environment);
  /// Without end(), the run has failed.
  ~EnvironmentFile();
  EnvironmentFile(const EnvironmentFile&) = delete;
  EnvironmentFile& operator=(const EnvironmentFile&) = delete;

  /// Writes the file again, as running: its folder was removed. Throws Error where it cannot.
  void write_again() const { write(RunState::running, std::nullopt); }

  /// Throws Error where the file cannot be written; the one before stays.
  void end(RunState state, int exit_code);

 private:
  void write(RunState state, std::optional<int> exit_code) const;

  std::string path_;
  RunRecord run_;
  RunEnvironment environment_;
  bool has_ended_ = false;
};

/// What an environment.json tells of the run.
struct RunStatus {
  RunState state = RunState::running;  ///< how it stands, or how it ended
  std::string model, dataset;          ///< as in its settings

  friend bool operator==(const RunStatus&, const RunStatus&) = default;
};

/// Nothing where the file is missing or damaged.
std::optional<RunStatus> read_run_status(const std::string& path);

}  // namespace tandem::train

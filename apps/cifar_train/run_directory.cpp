// Making it, and going on from it.
#include "run_directory.h"

#include "tandem/core/error.h"
#include "tandem/layers/file.h"
#include "tandem/train/metrics.h"
#include "tandem/train/report/report.h"

#include <fmt/core.h>

#include <csignal>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <system_error>

namespace tandem::apps {

namespace fs = std::filesystem;

train::CheckpointFolder checkpoint_folder(const Settings& s) {
  return train::CheckpointFolder(s.run_dir.empty() ? "" : (fs::path(s.run_dir) / "checkpoints").string());
}

train::CheckpointingOptions checkpointing_options(const Settings& s) {
  return {
      .every = s.checkpoint_every,
      .keep = s.keep,
      .best_by = s.best_by,
      .metadata = {{"model", s.model.name}, {"dataset", s.data.name}},
      .on_problem = [](const std::string& problem) { fmt::print(stderr, "warning: {}; training goes on\n", problem); }};
}

void prepare_run_directory(const Settings& s, const std::string& config) {
  std::error_code error;
  fs::create_directories(s.run_dir, error);
  require(!error, "--run-dir {}: cannot make this folder: {}", s.run_dir, error.message());
  require(!s.resume.empty() || checkpoint_folder(s).steps().empty(),
          "--run-dir {}: holds the checkpoints of a run: go on from them by --resume auto, or name another folder",
          s.run_dir);
  try {
    layers::AtomicFile file((fs::path(s.run_dir) / "config.toml").string());
    file.write(config.data(), static_cast<std::int64_t>(config.size()));
    file.commit();
  } catch (const Error& failure) {
    fail("--run-dir {}", failure.what());
  }
}

void resume(const Settings& s, train::Checkpointing& checkpoints, const comm::ProcessGroup& group) {
  if (s.resume.empty()) return;
  const bool is_auto = s.resume == "auto";
  const train::Resumed resumed = checkpoints.resume(is_auto ? s.run_dir : s.resume);
  require(is_auto || !resumed.path.empty(), "--resume {}: there is no checkpoint in this folder", s.resume);
  if (group.rank() != 0) return;
  for (const std::string& problem : resumed.passed_over) fmt::print(stderr, "note: passed over {}\n", problem);
  if (resumed.path.empty()) {
    fmt::print("  resume   {} has no checkpoint yet: the run begins\n", s.run_dir);
  } else {
    fmt::print("  resume   {}: {} epoch{} and {} steps are done\n", resumed.path, resumed.epochs,
               resumed.epochs == 1 ? "" : "s", resumed.steps);
  }
  std::fflush(stdout);
}

int end_stopped_run(const Settings& s, const train::EpochRecord& last, const train::StopSignals& signals,
                    train::Checkpointing& checkpoints, comm::ProcessGroup& group) {
  checkpoints.write();
  const std::string problem = checkpoints.finish();
  const int signal = static_cast<int>(train::max_over_ranks(signals.requested(), group));  // it may be that of one rank
  if (group.rank() == 0) {
    fmt::print("stopped in epoch {} by {}; go on by --resume auto --run-dir {}\n", last.epoch,
               signal == SIGINT ? "SIGINT" : "SIGTERM", s.run_dir);
    std::fflush(stdout);
    if (!problem.empty()) fmt::print(stderr, "error: {}\n", problem);
    report_run(s);
  }
  return 128 + signal;
}

void report_run(const Settings& s) {
  if (s.run_dir.empty()) return;
  try {
    const train::ReportFiles files = train::write_report(s.run_dir);
    fmt::print("  curves   {}\n  report   {}\n", files.png.empty() ? files.svg : files.png, files.page);
    std::fflush(stdout);
  } catch (const std::exception& failure) {
    fmt::print(stderr, "warning: no report of this run: {}\n", failure.what());
  }
}

}  // namespace tandem::apps

// Who writes which file, when.
#include "run_files.h"

#include "run_directory.h"

#include "tandem/comm/agreement.h"
#include "tandem/comm/long_work.h"
#include "tandem/core/error.h"
#include "tandem/train/curves_file.h"
#include "tandem/train/process_info.h"
#include "tandem/train/shell_word.h"
#include "tandem/train/stderr_line.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

namespace tandem::apps {

namespace fs = std::filesystem;

RunFiles::RunFiles(const Settings& settings, const train::RunRecord& run, const std::vector<std::string>& command,
                   comm::ProcessGroup& group, const train::Trainer& trainer, const layers::Module& model)
    : settings_(settings), trainer_(trainer), model_(model), is_resumed_(run.steps_done > 0) {
  if (settings.run_dir.empty()) return;
  const auto places = group.all_gather_bytes(fmt::format("{}, {}", train::host_name(), run.device));
  comm::run_agreed(group, [&] {
    if (group.rank() != 0) return;
    try {
      environment_ = std::make_unique<train::EnvironmentFile>(path_of("environment.json"), run,
                                                              train::this_environment(command, places));
      events_ = std::make_unique<train::RunEvents>(
          settings.run_dir, run,
          train::TensorBoardOptions{.first_step = trainer.steps_done() + 1,
                                    .on_problem = [then = after_problem(settings)](const std::string& problem) {
                                      train::print_to_stderr(fmt::format("warning: {}; {}", problem, then));
                                    }});
    } catch (const Error& error) {
      fail("--run-dir {}", error.what());
    }
  });
}

train::TrainObserver RunFiles::with(const train::TrainObserver& observer) {
  train::TrainObserver result = observer;
  if (!writes()) return result;
  result.step = [this, observer](const train::StepRecord& step) {
    if (observer.step) observer.step(step);
    const comm::LongWork slow_disk;
    events_->write(step);
  };
  result.epoch = [this, observer](const train::EpochRecord& epoch) {
    if (observer.epoch) observer.epoch(epoch);
    const comm::LongWork slow_disk;
    events_->write(epoch, trainer_.steps_done());
    if (settings_.histograms) events_->write_histograms(model_, trainer_.steps_done());
  };
  return result;
}

void RunFiles::write_again() {
  if (!writes()) return;
  environment_->write_again();
  events_->writer().begin_again();
}

void RunFiles::finish(train::RunState state, const train::EpochRecord* last, std::vector<std::string>& problems) {
  if (!writes()) return;
  if (last != nullptr) events_->write_result(*last, trainer_.steps_done());
  try {
    events_->write_evaluation(path_of("evaluation.json"), trainer_.steps_done());
  } catch (const Error& error) {
    problems.emplace_back(error.what());
  }
  if (state == train::RunState::stopped) {
    events_->writer().flush();
  } else {
    events_->finish(state == train::RunState::finished);
  }
  if (const std::string problem = events_->writer().problem(); !problem.empty()) problems.push_back(problem);
  write_curves(problems);
}

train::ResultFiles RunFiles::places(const std::vector<std::string>& weights, const std::vector<std::string>& logs,
                                    const train::ReportFiles* report) const {
  train::ResultFiles files{.folder = settings_.run_dir, .is_resumed = is_resumed_};
  const std::int64_t in_epoch = std::max<std::int64_t>(trainer_.steps_per_epoch(), 1);
  if (trainer_.steps_done() % in_epoch != 0) files.steps = trainer_.steps_done();
  const auto there = [&](std::initializer_list<const char*> names) {
    std::vector<std::string> paths;
    std::error_code unknown;
    for (const char* const name : names) {
      if (writes() && fs::exists(path_of(name), unknown)) paths.push_back(path_of(name));
    }
    return paths;
  };
  files.lines.emplace_back("settings", there({"config.toml", "environment.json"}));
  std::vector<std::string> saved;
  if (!checkpoint_folder(settings_).steps().empty()) saved = there({"checkpoints"});
  files.lines.emplace_back("log", logs);
  files.lines.emplace_back("tables", there({"curves.csv", "steps.csv"}));
  files.lines.emplace_back("profile", there({"profile.txt", "trace.json", "trace.html"}));
  saved.insert(saved.begin(), weights.begin(), weights.end());
  files.lines.emplace_back("weights", saved);
  if (writes()) {
    const fs::path runs = fs::path(settings_.run_dir).parent_path();
    files.lines.push_back(
        {"events", {"tensorboard " + train::shell_option("--logdir", runs.empty() ? "." : runs.string())}});
  }
  if (report == nullptr) return files;
  files.report = report->page;
  files.picture = report->png.empty() ? report->svg : report->png;
  if (is_resumed_) files.seconds = report->seconds;
  return files;
}

void RunFiles::write_curves(std::vector<std::string>& problems) const {
  std::error_code unknown;
  if (!fs::is_regular_file(settings_.run_log, unknown)) return;  // it could not be written, which is told
  try {
    train::write_curves(settings_.run_log, path_of("curves.csv"));
    if (settings_.trainer.log_every > 0) train::write_steps(settings_.run_log, path_of("steps.csv"));
  } catch (const Error& error) {
    problems.emplace_back(error.what());
  }
}

int RunFiles::end(train::RunState state, int exit_code) {
  if (!writes()) return exit_code;
  try {
    environment_->end(state, exit_code);
  } catch (const Error& error) {
    train::print_to_stderr(fmt::format("error: {}", error.what()));
    return exit_code == 0 ? 1 : exit_code;
  }
  return exit_code;
}

std::string RunFiles::path_of(const char* name) const { return (fs::path(settings_.run_dir) / name).string(); }

}  // namespace tandem::apps

// Who writes which file, when.
#include "run_files.h"

#include "run_directory.h"

#include "tandem/comm/agreement.h"
#include "tandem/core/error.h"
#include "tandem/train/curves_file.h"
#include "tandem/train/process_info.h"

#include <fmt/core.h>

#include <cstdio>
#include <filesystem>

namespace tandem::apps {

namespace fs = std::filesystem;

RunFiles::RunFiles(const Settings& settings, const train::RunRecord& run, const std::vector<std::string>& command,
                   comm::ProcessGroup& group, const train::Trainer& trainer, const layers::Module& model)
    : settings_(settings), trainer_(trainer), model_(model) {
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
                                      fmt::print(stderr, "warning: {}; {}\n", problem, then);
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
    events_->write(step);
  };
  result.epoch = [this, observer](const train::EpochRecord& epoch) {
    if (observer.epoch) observer.epoch(epoch);
    events_->write(epoch, trainer_.steps_done());
    if (settings_.histograms) events_->write_histograms(model_, trainer_.steps_done());
  };
  return result;
}

std::vector<std::pair<std::string, std::string>> RunFiles::finish(train::RunState state,
                                                                  std::vector<std::string>& problems) {
  if (!writes()) return {};
  try {
    events_->write_misclassified(path_of("evaluation.json"), trainer_.steps_done());
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
  std::vector<std::pair<std::string, std::string>> places;
  const auto add_if_there = [&](const char* what, const char* name) {
    std::error_code unknown;
    if (fs::exists(path_of(name), unknown)) places.emplace_back(what, path_of(name));
  };
  add_if_there("table", "curves.csv");
  add_if_there("saved", "checkpoints");
  const fs::path runs = fs::path(settings_.run_dir).parent_path();
  places.emplace_back("events", fmt::format("tensorboard --logdir {}", runs.empty() ? "." : runs.string()));
  return places;
}

void RunFiles::write_curves(std::vector<std::string>& problems) const {
  std::error_code unknown;
  if (!fs::is_regular_file(settings_.log, unknown)) return;  // a --log that goes into a pipe cannot be read again
  try {
    train::write_curves(settings_.log, path_of("curves.csv"));
  } catch (const Error& error) {
    problems.emplace_back(error.what());
  }
}

int RunFiles::end(train::RunState state, int exit_code) {
  if (!writes()) return exit_code;
  try {
    environment_->end(state, exit_code);
  } catch (const Error& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return exit_code == 0 ? 1 : exit_code;
  }
  return exit_code;
}

std::string RunFiles::path_of(const char* name) const { return (fs::path(settings_.run_dir) / name).string(); }

}  // namespace tandem::apps

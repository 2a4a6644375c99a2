// One list of what is to be kept, for all ends.
#include "run_end.h"

#include "find_nan.h"
#include "run_directory.h"
#include "tuning.h"

#include "tandem/comm/agreement.h"
#include "tandem/comm/long_work.h"
#include "tandem/core/error.h"
#include "tandem/train/console.h"
#include "tandem/train/metrics.h"
#include "tandem/train/network_description.h"
#include "tandem/train/process_info.h"
#include "tandem/train/scaling.h"
#include "tandem/train/shell_word.h"
#include "tandem/train/stderr_line.h"
#include "tandem/train/weights.h"

#include <fmt/core.h>

#include <cmath>
#include <csignal>
#include <cstdio>
#include <exception>
#include <functional>
#include <optional>

namespace tandem::apps {
namespace {

std::string describe_problem(const train::SavedWeights& saved) {
  return fmt::format("--save-weights {}; {}", saved.problem,
                     saved.path.empty() ? std::string("there was no room for them elsewhere, either: they are lost")
                                        : fmt::format("they are in {} instead", saved.path));
}

/// What more ranks would gain. Canonical mode exchanges gradients behind the backward pass, in another way.
std::optional<train::Scaling> scaling_of(const ReadyRun& run, const train::EpochRecord& last) {
  if (run.device.type != DeviceType::cpu || run.parts.train_loader->sampler().micro_batches() > 0) return std::nullopt;
  auto scaling = train::predict_scaling(last, run.parts.replicas->bucket_sizes(), run.group.message_costs());
  if (scaling) scaling->network_is_simulated = !run.group.network().empty();
  return scaling;
}

/// How training ended.
struct End {
  train::RunState state = train::RunState::failed;
  const train::EpochRecord* last = nullptr;  ///< null where it threw
  bool is_collective = true;                 ///< all ranks are here
};

/// What could not be written as training went, on rank 0; "" if nothing.
std::string save_problem(const ReadyRun& run) {
  if (!run.checkpoints.problem().empty()) return run.checkpoints.problem();
  if (!run.reporter.log_problem().empty()) return fmt::format("--log: {}", run.reporter.log_problem());
  return run.files.problem();
}

std::optional<train::EvaluationReport> last_evaluation(const ReadyRun& run, const End& end) {
  const bool has_one = run.settings.trainer.detailed && run.parts.trainer->has_evaluation();
  if (!has_one || !end.is_collective) return std::nullopt;
  return run.parts.trainer->evaluation_report();
}

/// On rank 0. Returns where the weights of the end are.
std::vector<std::string> save_weights(const ReadyRun& run, std::vector<std::string>& problems) {
  const Settings& s = run.settings;
  const NamedTensors weights = run.parts.trainer->weights();
  const layers::Metadata metadata = train::to_metadata(train::describe_network(s.model, *run.images.train));
  std::vector<std::string> paths;
  for (const std::string& path : weights_files_of(s)) {
    const train::SavedWeights saved = train::save_weights(path, weights, metadata);
    if (!saved.problem.empty()) problems.push_back(describe_problem(saved));
    if (!saved.path.empty()) paths.push_back(saved.path);
  }
  return paths;
}

/// On rank 0. Returns where the weights of the end are.
std::vector<std::string> write_and_tell(const ReadyRun& run, const End& end,
                                        const std::optional<train::EvaluationReport>& report,
                                        const train::TensorMemory& memory, std::vector<std::string>& problems) {
  const Settings& s = run.settings;
  const auto add = [&](const std::string& problem) {
    if (!problem.empty()) problems.push_back(problem);
  };
  const bool is_finished = end.state == train::RunState::finished;
  // Of a state that is not to be written, no room and no rights are the remedy.
  const bool has_diverged = end.last != nullptr && end.state == train::RunState::failed;
  if (const std::string problem = run.checkpoints.finish(); !problem.empty())
    add(has_diverged ? problem : checkpoint_problem(s, problem));
  std::vector<std::string> weights;
  if (is_finished) weights = save_weights(run, problems);
  if (report && !s.run_dir.empty()) add(write_evaluation(s, *report, *run.images.test));
  add(finish_tuning(s, run.device));
  const bool tells_result = end.last != nullptr && !end.last->stopped;
  run.reporter.flush_logs();
  if (tells_result) run.reporter.finish(*end.last, memory, scaling_of(run, *end.last));
  run.files.finish(end.state, end.last, problems);
  if (tells_result && report && s.per_class)
    run.reporter.tell(train::per_class_text(*report, run.images.test->class_names));
  if (!run.reporter.log_problem().empty()) add(fmt::format("--log: {}", run.reporter.log_problem()));
  return weights;
}

/// Whichever way it ended: what goes wrong from here on loses as little as it can, and is told at the end. Returns
/// where rank 0 has put the weights of the end.
std::vector<std::string> keep_all(const ReadyRun& run, const End& end, std::vector<std::string>& problems) {
  run.watch.look();
  if (end.state == train::RunState::stopped && !run.settings.run_dir.empty()) {
    const comm::LongWork writing;
    run.checkpoints.write_last();
    run.checkpoints.wait();  // first of all: who sent the signal may not wait for the rest
  }
  const train::TensorMemory memory = train::peak_tensor_memory(run.device);  // before a profile measures the machine
  // mpirun kills the ranks a second after it has told them to stop.
  if (end.is_collective) run.profiled.finish(end.state != train::RunState::stopped, problems);
  const std::optional<train::EvaluationReport> report = last_evaluation(run, end);
  std::vector<std::string> weights;
  const auto write = [&] {
    const comm::LongWork writing;
    if (run.group.rank() == 0) weights = write_and_tell(run, end, report, memory, problems);
  };
  if (end.is_collective) {
    comm::run_agreed(run.group, write);
  } else {
    write();
  }
  return weights;
}

/// Behind keep_all(): `tell` is given where the run's files are, on rank 0, before problems are told.
int close(const ReadyRun& run, train::RunState state, int code, const std::vector<std::string>& weights,
          const std::vector<std::string>& problems, const std::function<void(const train::ResultFiles&)>& tell) {
  const int result = run.files.end(state, code);
  if (run.group.rank() != 0) return result;
  const auto made = make_report(run.settings);
  tell(run.files.places(weights, run.reporter.logs(), made ? &*made : nullptr));
  std::fflush(stdout);
  for (const std::string& problem : problems) train::print_to_stderr(fmt::format("error: {}", problem));
  return result;
}

int end_finished(const ReadyRun& run, const train::EpochRecord& last, bool has_trained) {
  const bool is_finite =
      !last.diverged && (!has_trained || std::isfinite(last.train_loss)) && std::isfinite(last.test_loss);
  const train::RunState state = is_finite ? train::RunState::finished : train::RunState::failed;
  std::vector<std::string> problems;
  const std::vector<std::string> weights = keep_all(run, {.state = state, .last = &last}, problems);
  if (!is_finite) problems.push_back(divergence_text(run.settings, last));
  const int code = train::max_over_ranks(problems.empty() ? 0.0 : 1.0, run.group) > 0.0 ? 1 : 0;
  return close(run, state, code, weights, problems,
               [&](const train::ResultFiles& files) { run.reporter.tell_result(files); });
}

/// By a signal, or because something could not be written, of which one rank is enough.
int end_stopped(const ReadyRun& run, const train::EpochRecord& last) {
  const std::string save = save_problem(run);
  const int mine = run.signals != nullptr ? run.signals->requested() : 0;
  const int signal = static_cast<int>(train::max_over_ranks(mine, run.group));
  if (signal == SIGINT) run.reporter.begin_fresh_line();
  std::vector<std::string> problems;
  keep_all(run, {.state = train::RunState::stopped, .last = &last}, problems);
  if (signal == 0 && problems.empty() && run.group.rank() == 0) problems.push_back(save);
  const std::string cause = signal == 0        ? "--on-save-error stop"
                            : signal == SIGINT ? "SIGINT"
                            : signal == SIGHUP ? "SIGHUP"
                                               : "SIGTERM";
  const std::string& folder = run.settings.run_dir;
  const std::string how =
      folder.empty() ? ""
                     : fmt::format("; to go on:\n  --resume auto {} {}", train::shell_option("--run-dir", folder),
                                   train::shell_option("--config", folder + "/config.toml"));
  const std::string text = fmt::format("stopped in epoch {} by {}{}", last.epoch, cause, how);
  return close(run, train::RunState::stopped, signal == 0 ? 1 : 128 + signal, {}, problems,
               [&](const train::ResultFiles& files) { run.reporter.tell(train::closing_text(text, files)); });
}

/// By what training threw: on all ranks alike, or on this one alone, and then no other rank is there to be waited for.
void end_failed(const ReadyRun& run, const std::exception& error) {
  const bool is_agreed = run.group.size() == 1 || dynamic_cast<const comm::AgreedError*>(&error) != nullptr;
  if (!is_agreed && run.group.rank() != 0) return;
  try {
    std::vector<std::string> problems;
    keep_all(run, {.is_collective = is_agreed}, problems);
    const std::string text = fmt::format("ended by an error behind step {}", run.parts.trainer->steps_done());
    close(run, train::RunState::failed, dynamic_cast<const Error*>(&error) != nullptr ? 2 : 1, {}, problems,
          [&](const train::ResultFiles& files) { run.reporter.tell(train::closing_text(text, files)); });
  } catch (const std::exception& other) {  // the first error is the one that is told by main
    train::print_to_stderr(fmt::format("warning: not all of this run was written: {}", other.what()));
  }
}

}  // namespace

int train_to_the_end(const ReadyRun& run, const train::TrainObserver& given) {
  train::TrainObserver observer = given;
  const bool stops = run.settings.on_save_error == "stop";
  if (run.signals != nullptr || stops) {
    observer.stop = [&run, stops] {
      return (run.signals != nullptr && run.signals->requested() != 0) || (stops && !save_problem(run).empty());
    };
  }
  train::Trainer& trainer = *run.parts.trainer;
  const std::int64_t steps_before = trainer.steps_done();
  train::EpochRecord last;
  try {
    last = trainer.run(observer);
  } catch (const std::exception& error) {
    end_failed(run, error);
    throw;
  }
  // Without a step of its own, its last checkpoint was of the very end.
  return last.stopped ? end_stopped(run, last) : end_finished(run, last, trainer.steps_done() > steps_before);
}

}  // namespace tandem::apps

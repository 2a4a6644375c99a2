// A child process for each run.
#include "apps/study/conduct.h"

#include "apps/study/bench_run.h"
#include "apps/study/catalogue.h"
#include "apps/study/memory.h"
#include "apps/study/process.h"
#include "apps/study/tables.h"
#include "tandem/core/error.h"
#include "tandem/layers/file.h"
#include "tandem/train/progress_format.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

namespace tandem::study {
namespace {

namespace fs = std::filesystem;

double limit_of(const Task& task, double asked) {
  constexpr double kLeast = 600.0, kTimes = 10.0;
  if (asked > 0.0) return asked;
  return std::isfinite(task.estimate) ? std::max(kLeast, kTimes * task.estimate) : kTimes * kLeast;
}

/// "[ 3/40] batch-size: batch-size 64, seed 1"
std::string name_of(const Plan& plan, const Task& task, std::size_t number, std::size_t count) {
  return fmt::format("[{}/{}] {}: {}, seed {}", number, count, plan.study.name, plan.points[task.run.point].label,
                     task.run.seed);
}

/// Adds a line to what a program printed, as its last error.
void note_error(const std::string& output, const std::string& text) {
  std::ofstream(output, std::ios::app) << "error: " << text << '\n';
}

/// Of a program that ended with an exit code and told no error of its own, as mpirun does: the last that it printed.
void note_exit(const std::string& output, int exit_code) {
  std::ifstream file(output);
  const std::string text(std::istreambuf_iterator<char>(file), {});
  if (!last_error(text).empty() && exit_code < 128) return;
  const std::string last = last_line(text);
  const std::string how =
      exit_code > 128 ? fmt::format("signal {} ended it", exit_code - 128) : fmt::format("exit code {}", exit_code);
  note_error(output, last.empty() ? how : fmt::format("{}, behind '{}'", how, last));
}

/// Returns whether this program was stopped.
bool run_task(const Plan& plan, const Task& task, const ConductOptions& options, double& seconds) {
  const fs::path folder = fs::path(options.runs) / task.run.folder;
  std::error_code error;
  fs::create_directories(folder, error);
  require(!error, "{}: cannot be made: {}; name another folder by --out", folder.string(), error.message());
  const std::string output = (folder / kOutputFile).string();
  fs::remove(output, error);
  std::vector<std::string> words =
      command_of(program_file(plan.study.program), plan.study, plan.points[task.run.point], task.run.seed);
  const std::string exit_file = (folder / kExitFile).string();
  fs::remove(exit_file, error);
  const Bench* const bench = find_bench(plan.study.program);
  const std::vector<std::string> more =
      bench != nullptr
          ? bench->options(folder.string())
          : std::vector<std::string>{"--run-dir=" + folder.string(), "--resume=auto", "--progress=none", "--keep=1"};
  words.insert(words.end(), more.begin(), more.end());
  const double limit = limit_of(task, options.timeout_seconds);
  ProcessResult result;
  try {
    result = run_process(words, output, std::chrono::duration<double>(limit), options.stop);
  } catch (const Error& failure) {
    note_error(output, failure.what());
    layers::write_file(exit_file, "1");
    return false;
  }
  seconds = result.seconds;
  if (result.end == ProcessEnd::ran_out_of_time)
    note_error(output, fmt::format("it did not end within {} (--timeout)", train::format_duration(limit)));
  else if (result.end == ProcessEnd::exited && result.exit_code != 0)
    note_exit(output, result.exit_code);
  if (result.end != ProcessEnd::stopped) layers::write_file(exit_file, std::to_string(result.exit_code));
  return result.end == ProcessEnd::stopped;
}

}  // namespace

std::vector<Task> tasks_of(const std::vector<Plan>& plans, const std::string& runs, Estimator& estimator) {
  std::vector<Task> tasks;
  std::set<std::string> seen;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    for (const PlannedRun& run : plans[i].runs) {
      const Point& point = plans[i].points[run.point];
      if (!seen.insert(folder_end(point, run.seed)).second || is_done(find_run(runs, plans[i], run).outcome)) continue;
      tasks.push_back({i, run, estimator.seconds_of(plans[i], point)});
    }
  }
  return tasks;
}

bool conduct(const std::vector<Plan>& plans, const std::vector<Task>& tasks, const ConductOptions& options) {
  Remaining remaining;
  for (const Task& task : tasks) remaining.add(task.estimate);
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const Task& task = tasks[i];
    const Plan& plan = plans[task.plan];
    double seconds = 0.0;
    if (options.stop() || run_task(plan, task, options, seconds)) return false;
    const KeptRun kept = find_run(options.runs, plan, task.run);
    std::error_code error;
    if (is_done(kept.outcome)) {
      fs::remove_all(fs::path(kept.folder) / "checkpoints", error);  // nothing goes on from them
      remaining.finish(task.estimate, seconds);
    } else {
      remaining.leave(task.estimate);
    }
    const std::string how = kept.outcome == RunOutcome::finished ? "" : ": " + kept.reason;
    options.tell(fmt::format(
        "{}: {}{}{}", name_of(plan, task, i + 1, tasks.size()), train::format_duration(seconds), how,
        i + 1 < tasks.size() ? fmt::format(", about {} left", train::format_duration(remaining.seconds())) : ""));
    if (i + 1 < tasks.size() && tasks[i + 1].plan != task.plan) options.plan_is_done();
  }
  return true;
}

}  // namespace tandem::study

// study: the experiments of a course on distributed training, as files.
#include "apps/arguments/help_layout.h"
#include "apps/arguments/program.h"
#include "apps/study/catalogue.h"
#include "apps/study/conduct.h"
#include "apps/study/first_look.h"
#include "apps/study/kept_options.h"
#include "apps/study/options.h"
#include "apps/study/page.h"
#include "apps/study/reading.h"
#include "apps/study/tables.h"
#include "tandem/core/error.h"
#include "tandem/layers/file.h"
#include "tandem/train/progress_format.h"
#include "tandem/train/stderr_line.h"
#include "tandem/train/stop_signals.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace tandem;
using namespace tandem::study;
namespace fs = std::filesystem;

constexpr int kSomeRunsFailed = 1;

void list_studies() {
  const int columns = apps::help_columns();
  for (const Study& study : all_studies()) {
    const std::string number = study.number > 0 ? fmt::format("{:2}", study.number) : "  ";
    fmt::print("{}", apps::help_entry(number + " " + study.name, study.title + ". " + study.question, columns));
  }
}

/// Keeps two studies from working in one folder.
class FolderLock {
 public:
  explicit FolderLock(const std::string& folder) {
    const std::string path = (fs::path(folder) / ".lock").string();
    file_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    require(file_ >= 0, "{}: cannot write: {}; name another folder by --out", path, std::strerror(errno));
    require(::flock(file_, LOCK_EX | LOCK_NB) == 0,
            "{}: another study works in this folder; wait for it, or name another by --out", folder);
  }
  ~FolderLock() { ::close(file_); }
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int file_ = -1;
};

std::vector<Study> studies_of(const Options& options) {
  if (options.all) return all_studies();
  std::vector<Study> studies;
  for (const std::string& name : options.studies)
    for (Study& study : find_studies(name)) studies.push_back(std::move(study));
  return studies;
}

std::string folder_of(const Options& options, const Study& study) {
  return (fs::path(options.folder) / study.name).string();
}

/// What the command line asks for a study; for a report, what it does not give is as when the study was run.
PlanOptions plan_options_of(const Options& options, const Study& study) {
  PlanOptions own = options.plan;
  if (options.action == Action::report) {
    if (const auto kept = kept_options(folder_of(options, study))) {
      if (!options.extent_is_given) own.extent = kept->extent;
      if (!options.seeds_are_given) own.seeds = kept->seeds;
      own.settings = kept->settings;
      set_all(own.settings, options.plan.settings);
    }
  }
  const std::vector<std::string> known = options_of(study.program);
  std::erase_if(own.settings,
                [&](const auto& setting) { return std::ranges::find(known, setting.first) == known.end(); });
  return own;
}

std::vector<Plan> plans_of(const Options& options) {
  std::vector<Plan> plans;
  for (const Study& study : studies_of(options)) {
    const bool is_twice = std::ranges::any_of(plans, [&](const Plan& plan) { return plan.study.name == study.name; });
    require(!is_twice, "{}: there are two studies of this name; name each once", study.name);
    plans.push_back(make_plan(study, plan_options_of(options, study)));
  }
  return plans;
}

std::string runs_folder(const Options& options) { return (fs::path(options.folder) / "runs").string(); }

std::vector<Results> collect_all(const Options& options, const std::vector<Plan>& plans) {
  std::vector<Results> studies;
  for (const Plan& plan : plans) studies.push_back(collect(runs_folder(options), plan));
  return studies;
}

/// Writes tables and page; returns whether all runs are finished.
bool write_report(const Options& options, const std::vector<Results>& studies) {
  bool all_finished = true;
  for (const Results& results : studies) {
    write_tables(results, folder_of(options, results.plan.study));
    all_finished = all_finished && is_complete(results);
  }
  layers::write_file((fs::path(options.folder) / "report.html").string(), study_page(studies));
  return all_finished;
}

bool has_a_run(const Results& results) {
  return std::ranges::any_of(results.points, [](const PointResult& point) {
    return std::ranges::any_of(point.seeds,
                               [](const SeedResult& seed) { return seed.run.outcome != RunOutcome::missing; });
  });
}

/// The report of what is there: of the studies that are named or, where none is, of those that were run in the folder.
/// Throws Error, and leaves the report that is there, where one that is named, or all of them, have no run.
bool report_again(const Options& options) {
  std::vector<Plan> plans = plans_of(options);
  if (options.all)
    std::erase_if(plans, [&](const Plan& plan) { return !kept_options(folder_of(options, plan.study)); });
  std::vector<Results> studies = collect_all(options, plans);
  if (options.all) std::erase_if(studies, [](const Results& results) { return !has_a_run(results); });
  require(!studies.empty(), "report: {} holds no run of a study; study run makes some, or name their folder by --out",
          options.folder);
  for (const Results& results : studies)
    require(has_a_run(results),
            "report: {} holds no run of {} with these options; give those that it was run with, or study run makes it",
            options.folder, results.plan.study.name);
  return write_report(options, studies);
}

/// What it would take, as a table and a sum.
void tell_plan(const std::vector<Plan>& plans, const std::vector<Task>& tasks) {
  Remaining all;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    Remaining own;
    std::size_t count = 0;
    for (const Task& task : tasks) {
      if (task.plan != i) continue;
      own.add(task.estimate);
      all.add(task.estimate);
      ++count;
    }
    fmt::print("{}: {} runs of {} to be made, about {}\n", plans[i].study.name, count, plans[i].runs.size(),
               train::format_duration(own.seconds()));
  }
  fmt::print("about {} in all\n", train::format_duration(all.seconds()));
}

int run_studies(const Options& options) {
  const std::vector<Plan> plans = plans_of(options);
  std::error_code error;
  fs::create_directories(runs_folder(options), error);
  require(!error, "{}: cannot be made: {}; name another folder by --out", runs_folder(options), error.message());
  const FolderLock lock(options.folder);
  look_first(plans, options.plan.settings, options.folder);
  const train::StopSignals signals;
  const auto stop = [&] { return signals.requested() != 0; };
  Estimator estimator((fs::path(options.folder) / "probes").string(), stop);
  const std::vector<Task> tasks = tasks_of(plans, runs_folder(options), estimator);
  if (!stop()) tell_plan(plans, tasks);
  std::fflush(stdout);
  if (options.action == Action::plan) return stop() ? 128 + signals.requested() : 0;
  ConductOptions conducting{runs_folder(options), options.timeout_seconds, stop,
                            [](const std::string& line) { train::print_to_stderr(line); },
                            [&] { write_report(options, collect_all(options, plans)); }};
  for (const Plan& plan : plans) keep_options(plan_options_of(options, plan.study), folder_of(options, plan.study));
  const bool is_complete = conduct(plans, tasks, conducting);
  const bool all_finished = write_report(options, collect_all(options, plans));
  fmt::print("report {}\n", (fs::path(options.folder) / "report.html").string());
  if (!is_complete) {
    train::print_to_stderr("stopped: the same command goes on with what is not done");
    return 128 + signals.requested();
  }
  return all_finished ? 0 : kSomeRunsFailed;
}

int run(int argc, char** argv) {
  const auto options = read_command_line(argc, argv);
  if (!options) return 0;
  if (options->action == Action::list) {
    list_studies();
    return 0;
  }
  if (options->action != Action::report) return run_studies(*options);
  const bool all_finished = report_again(*options);
  fmt::print("report {}\n", (fs::path(options->folder) / "report.html").string());
  return all_finished ? 0 : kSomeRunsFailed;
}

}  // namespace

int main(int argc, char** argv) {
  apps::hold_standard_streams();
  std::signal(SIGXFSZ, SIG_IGN);  // a file beyond the system's limit is a full disk: an error to report
  return apps::run_program([&] { return run(argc, argv); });
}

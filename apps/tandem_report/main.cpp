// tandem_report: makes or remakes the reports of runs, and a page that compares them.
#include "apps/arguments/arguments.h"
#include "apps/arguments/program.h"
#include "tandem/core/error.h"
#include "tandem/train/report/report.h"

#include <fmt/core.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

namespace {

/// Beside the runs where they are in one folder, else in the working directory.
std::string default_comparison(const std::vector<std::string>& runs) {
  namespace fs = std::filesystem;
  const auto folder_of = [](const std::string& run) {
    const fs::path path = fs::path(run).lexically_normal();
    return path.has_filename() ? path.parent_path() : path.parent_path().parent_path();
  };
  const fs::path folder = folder_of(runs.front());
  const bool are_together = std::ranges::all_of(runs, [&](const std::string& run) { return folder_of(run) == folder; });
  return ((are_together ? folder : fs::path()) / "comparison.html").string();
}

/// Each folder once, by its first name.
std::vector<std::string> without_repetitions(const std::vector<std::string>& runs) {
  std::vector<std::string> distinct;
  for (const std::string& run : runs) {
    std::error_code unknown;
    const auto is_same = [&](const std::string& other) { return std::filesystem::equivalent(run, other, unknown); };
    if (std::ranges::none_of(distinct, is_same)) {
      distinct.push_back(run);
    } else {
      fmt::print(stderr, "note: {} is named more than once; it counts once\n", run);
    }
  }
  return distinct;
}

void report(const std::string& program, const std::vector<std::string>& named, const std::string& comparison) {
  using namespace tandem;
  require(!named.empty(), "no run is named: {} RUN... makes the report of each folder of a training run", program);
  const std::vector<std::string> runs = without_repetitions(named);
  for (const std::string& run : runs) {
    const train::ReportFiles files = train::write_report(run);
    for (const std::string& problem : files.problems) fmt::print(stderr, "note: {}\n", problem);
    fmt::print("{}\n", files.page);
    if (files.png.empty())
      fmt::print(stderr,
                 "note: no curves.png: this build of Tandem has no cairo (libcairo2-dev); curves.svg is there\n");
  }
  if (runs.size() < 2 && comparison.empty()) return;
  const std::string path = comparison.empty() ? default_comparison(runs) : comparison;
  const std::string table = train::write_comparison(runs, path);
  fmt::print("\n{}\n{}\n", table, path);
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGXFSZ, SIG_IGN);  // a file beyond the system's limit is a full disk: an error to report
  return tandem::apps::run_program([&] {
    CLI::App app(
        "Makes report.html, curves.svg and curves.png of run directories from the files in them; of several runs also "
        "a page that compares them, and a table of their results");
    std::vector<std::string> runs;
    std::string comparison;
    app.add_option("RUN", runs, "folders of training runs");
    tandem::apps::expect_path(
        *app.add_option("--compare", comparison,
                        "write the page that compares the runs to FILE; default comparison.html beside several runs")
             ->type_name("FILE"));
    if (tandem::apps::parse_arguments(app, argc, argv)) report(tandem::apps::program_name(argv), runs, comparison);
    return 0;
  });
}

// tandem_report: makes or remakes the reports of runs, and a page that compares them.
#include "apps/arguments/arguments.h"
#include "apps/arguments/program.h"
#include "tandem/core/error.h"
#include "tandem/train/report/report.h"

#include <fmt/core.h>
#include <CLI/CLI.hpp>

#include <csignal>
#include <string>
#include <vector>

namespace {

void report(const std::vector<std::string>& runs, const std::string& comparison) {
  using namespace tandem;
  require(!runs.empty(), "no run is named: tandem_report RUN... makes the report of each folder that --run-dir made");
  for (const std::string& run : runs) {
    const train::ReportFiles files = train::write_report(run);
    for (const std::string& problem : files.problems) fmt::print(stderr, "note: {}\n", problem);
    fmt::print("{}\n", files.page);
    if (files.png.empty())
      fmt::print(stderr,
                 "note: no curves.png: this build of Tandem has no cairo (libcairo2-dev); curves.svg is there\n");
  }
  if (comparison.empty()) return;
  train::write_comparison(runs, comparison);
  fmt::print("{}\n", comparison);
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGXFSZ, SIG_IGN);  // a file beyond the system's limit is a full disk: an error to report
  return tandem::apps::run_program([&] {
    CLI::App app("Makes report.html, curves.svg and curves.png of run directories from the files in them");
    std::vector<std::string> runs;
    std::string comparison;
    app.add_option("RUN", runs, "folders that cifar_train --run-dir made");
    tandem::apps::expect_path(
        *app.add_option("--compare", comparison, "also write a page to FILE that compares the runs")
             ->type_name("FILE"));
    if (tandem::apps::parse_arguments(app, argc, argv)) report(runs, comparison);
    return 0;
  });
}

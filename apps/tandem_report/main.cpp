// tandem_report: makes or remakes the reports of runs, and a page that compares them.
#include "apps/arguments/arguments.h"
#include "apps/arguments/program.h"
#include "tandem/core/error.h"
#include "tandem/train/report/report.h"
#include "tandem/train/stderr_line.h"
#include "tandem/train/terminal.h"

#include <fmt/format.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

namespace {

constexpr const char* kComparison = "comparison.html";

/// Beside the runs where they are in one folder, else in the working directory.
std::string default_comparison(const std::vector<std::string>& runs) {
  namespace fs = std::filesystem;
  const auto folder_of = [](const std::string& run) {
    const fs::path path = fs::path(run).lexically_normal();
    return path.has_filename() ? path.parent_path() : path.parent_path().parent_path();
  };
  const fs::path folder = folder_of(runs.front());
  const bool are_together = std::ranges::all_of(runs, [&](const std::string& run) { return folder_of(run) == folder; });
  return ((are_together ? folder : fs::path()) / kComparison).string();
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
      tandem::train::print_to_stderr(fmt::format("note: {} is named more than once; it counts once", run));
    }
  }
  return distinct;
}

void tell(const tandem::Error& error) {
  std::fflush(stdout);
  tandem::train::print_to_stderr(fmt::format("error: {}", error.what()));
}

/// Of an earlier comparison, which runs/* names as well.
bool is_own_page(const std::string& path) {
  std::error_code unknown;
  const std::filesystem::path place(path);
  return place.filename() == kComparison && std::filesystem::is_regular_file(place, unknown);
}

/// What the command line named, the latter two as "NAME: REASON".
struct Named {
  std::vector<std::string> runs;
  std::vector<std::string> others;   ///< are there, and no runs: a pattern such as runs/* names them as well
  std::vector<std::string> missing;  ///< are not there: slips, which no pattern gives
  bool all_are_seen = true;          ///< none may not be looked into
};

/// "a: is no folder of a run; b: holds neither log.jsonl nor config.toml; and 3 more"
std::string joined(const std::vector<std::string>& reasons) {
  constexpr std::size_t kMostTold = 5;
  const std::size_t told = std::min(reasons.size(), kMostTold);
  const std::string text =
      fmt::format("{}", fmt::join(reasons.begin(), reasons.begin() + static_cast<int>(told), "; "));
  return reasons.size() > told ? fmt::format("{}; and {} more", text, reasons.size() - told) : text;
}

std::string with_remedy(const std::vector<std::string>& reasons, bool is_one) {
  return fmt::format("{}; name {} that --run-dir made", joined(reasons), is_one ? "a folder" : "folders");
}

/// Tells of the others. Throws Error where none is a run.
Named sorted(const std::vector<std::string>& names) {
  Named named;
  std::vector<std::string> own, none;
  for (const std::string& name : names) {
    try {
      const std::string reason = tandem::train::reason_of_no_run(name), text = fmt::format("{}: {}", name, reason);
      std::error_code unknown;
      const bool is_missing =
          std::filesystem::symlink_status(name, unknown).type() == std::filesystem::file_type::not_found;
      if (reason.empty()) {
        named.runs.push_back(name);
        continue;
      }
      none.push_back(text);
      if (!is_own_page(name)) (is_missing ? named.missing : named.others).push_back(text);
    } catch (const tandem::Error& error) {
      if (names.size() == 1) throw;
      tell(error);
      named.all_are_seen = false;
    }
  }
  tandem::require(!named.runs.empty() || none.empty(), "{}", with_remedy(none, names.size() == 1));
  if (!named.others.empty())
    tandem::train::print_to_stderr("note: passed over what is not a run: " + joined(named.others));
  return named;
}

/// The columns of the terminal that shows standard output; 0: none does.
int columns_of_output() { return ::isatty(STDOUT_FILENO) == 1 ? tandem::train::query_terminal(stdout).width : 0; }

/// Returns whether there is a report now.
bool make_report(const std::string& run, bool& lacks_png) {
  try {
    const tandem::train::ReportFiles files = tandem::train::write_report(run);
    for (const std::string& problem : files.problems) tandem::train::print_to_stderr(fmt::format("note: {}", problem));
    fmt::print("{}\n", files.page);
    lacks_png = lacks_png || files.png.empty();
    return true;
  } catch (const tandem::Error& error) {
    tell(error);
    return false;
  }
}

/// Returns whether there is such a page now; the table is printed in any case.
bool compare(const std::vector<std::string>& runs, const std::string& path) {
  std::string problem;
  fmt::print("\n{}\n", tandem::train::write_comparison(runs, path, columns_of_output(), &problem));
  if (problem.empty())
    fmt::print("{}\n", path);
  else
    tell(tandem::Error(problem));
  return problem.empty();
}

/// Returns the exit code. What is not there, or cannot be written of one run, keeps no other from its report.
int report(const std::string& program, const std::vector<std::string>& names, const std::string& comparison) {
  using namespace tandem;
  require(!names.empty(), "no run is named: {} RUN... makes the report of each folder of a training run", program);
  const Named named = sorted(names);
  const std::vector<std::string> runs = without_repetitions(named.runs);
  bool all_are_made = named.all_are_seen, lacks_png = false;
  for (const std::string& run : runs) all_are_made = make_report(run, lacks_png) && all_are_made;
  if (lacks_png)
    tandem::train::print_to_stderr(
        "note: no curves.png: this build of Tandem has no cairo (libcairo2-dev); curves.svg is there");
  if (runs.size() > 1 || (!runs.empty() && !comparison.empty()))
    all_are_made = compare(runs, comparison.empty() ? default_comparison(runs) : comparison) && all_are_made;
  if (named.missing.empty()) return all_are_made ? 0 : 2;
  tell(Error(with_remedy(named.missing, named.missing.size() == 1)));
  return 2;
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
    return tandem::apps::parse_arguments(app, argc, argv) ? report(tandem::apps::program_name(argv), runs, comparison)
                                                          : 0;
  });
}

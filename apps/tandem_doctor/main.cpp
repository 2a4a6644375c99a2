// tandem_doctor: whether this machine can train, and what to do where it cannot; or what the ranks of a run are doing.
#include "checks.h"

#include "apps/arguments/arguments.h"
#include "apps/arguments/program.h"

#include <fmt/core.h>
#include <CLI/CLI.hpp>

#include <filesystem>
#include <string_view>

namespace {

using namespace tandem::apps;
using doctor::Finding;

std::vector<Finding> check_all(const std::string& mpirun) {
  std::vector<Finding> findings;
  const auto add = [&](std::vector<Finding> found) {
    for (Finding& finding : found) findings.push_back(std::move(finding));
  };
  std::error_code unknown;
  const std::string self = std::filesystem::read_symlink("/proc/self/exe", unknown).string();
  add(doctor::check_build());
  add(doctor::check_libraries());
  add(doctor::check_gpus());
  add(doctor::check_cores(tandem::environment_variable));
  add(doctor::check_memory());
  add(doctor::check_folders("."));
  add(doctor::check_ranks(mpirun, self, tandem::environment_variable));
  add(doctor::check_data("."));
  add(doctor::check_tuning("."));
  return findings;
}

int run(int argc, char** argv) {
  std::string mpirun = "mpirun";
  std::string run_or_file;
  bool as_json = false;
  CLI::App app(
      "Checks whether this machine can train: build, libraries, GPUs, cores, memory, disks, ranks, data. Exit code 1 "
      "if there is a fault. With PID or FILE: tells what the ranks of a run are doing, and which of them the others "
      "wait for");
  app.option_defaults()->always_capture_default();
  app.add_flag("--json", as_json, "Print one JSON object, for programs");
  expect_path(*app.add_option("--mpirun", mpirun, "What starts ranks: a name on the PATH, or a file"));
  const CLI::Option& asked =
      *app.add_option("run", run_or_file,
                      "A run of several ranks on this host, by the process of any of them; or the file "
                      "that a run has left when it hung")
           ->option_text("PID|FILE");
  if (!parse_arguments(app, argc, argv)) return 0;
  if (asked.count() > 0) {
    tandem::require(!as_json, "--json: is for the checks of this machine; leave it out");
    fmt::print("{}", doctor::text_of_run(run_or_file));
    return 0;
  }
  const std::vector<Finding> findings = check_all(mpirun);
  fmt::print("{}", as_json ? doctor::json_of(findings) : doctor::text_of(findings));
  return doctor::has_fault(findings) ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  hold_standard_streams();
  if (argc == 2 && std::string_view(argv[1]) == "--rank-of-doctor") return doctor::run_as_rank();
  return run_program([&] { return run(argc, argv); });
}

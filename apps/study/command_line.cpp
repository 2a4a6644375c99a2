#include "apps/arguments/arguments.h"
#include "apps/study/options.h"
#include "tandem/core/error.h"
#include "tandem/core/suggest.h"

#include <CLI/CLI.hpp>

#include <algorithm>

namespace tandem::study {
namespace {

/// What the first word asks for; whether all studies are meant.
void set_action(Options& options, std::vector<std::string> words, bool only_plan) {
  constexpr std::string_view kCommands[] = {"list", "run", "all", "report"};
  const std::string command = words.empty() ? "list" : words.front();
  require(std::ranges::find(kCommands, command) != std::end(kCommands), "{}; study run {} runs a study",
          unknown_name("command", command, kCommands), command);
  options.studies.assign(words.empty() ? words.end() : words.begin() + 1, words.end());
  options.all = command == "all" || (command == "report" && options.studies.empty());
  require(command != "list" || options.studies.empty(), "list: takes no names; study run NAME runs a study");
  require(command != "all" || options.studies.empty(), "all: takes no names, for it runs all; study run NAME runs one");
  require(command != "run" || !options.studies.empty(),
          "run: name what to run: numbers and names that study list tells, or a .toml file; study all runs all");
  options.action = command == "list" ? Action::list : command == "report" ? Action::report : Action::run;
  if (only_plan && options.action == Action::run) options.action = Action::plan;
}

}  // namespace

std::optional<Options> read_command_line(int argc, const char* const* argv) {
  Options options;
  CLI::App app(
      "Runs the experiments of a course on distributed training, over seeds, and writes one report with tables, "
      "pictures and what the numbers say. Commands: list tells which there are; run 1 4 my.toml runs these; all runs "
      "all "
      "of them; report makes the report again from what is there. What is done is not run again");
  std::vector<std::string> words;
  bool list = false, quick = false, full = false, plan = false;
  std::int64_t seeds = options.plan.seeds;
  double timeout = 0.0;
  std::string dataset, model, device, data, threads;
  app.add_option("COMMAND", words, "list, run NAME..., all, report [NAME...]");
  app.add_flag("--list", list, "As the command list");
  app.add_flag("--quick", quick, "Small runs, for two cores (as without --full)");
  app.add_flag("--full", full, "Long runs, as for results to be quoted");
  app.add_flag("--plan", plan, "Tell what would be run and how long it takes, and stop");
  CLI::Option& seeds_option = *app.add_option("--seeds", seeds, "Runs of each combination, with seeds from 1 on [3]");
  apps::expect_whole_number(seeds_option, 1, 100);
  app.add_option("--dataset", dataset, "Data set of all runs whose study does not vary it, as cifar_train --dataset");
  app.add_option("--data", data, "Folder of its files");
  app.add_option("--model", model, "Network of all runs whose study does not vary it");
  app.add_option("--device", device, "Device of all runs");
  app.add_option("--threads", threads, "Threads of each rank");
  apps::expect_path(
      *app.add_option("--out", options.folder, "Folder of runs, tables and report; default study-quick or study-full"));
  apps::expect_finite_number(*app.add_option(
      "--timeout", timeout, "End a run after so many seconds; default 10 times its estimate, and at least 10 minutes"));
  if (!apps::parse_arguments(app, argc, argv)) return std::nullopt;
  require(!(quick && full), "--quick and --full exclude each other: give one");
  if (list) words = {"list"};
  set_action(options, words, plan);
  options.plan.extent = full ? Extent::full : Extent::quick;
  options.plan.seeds = static_cast<int>(seeds);
  options.extent_is_given = full || quick;
  options.seeds_are_given = seeds_option.count() > 0;
  for (const auto& [name, value] : {std::pair{"dataset", dataset}, std::pair{"data", data}, std::pair{"model", model},
                                    std::pair{"device", device}, std::pair{"threads", threads}})
    if (!value.empty()) options.plan.settings.emplace_back(name, value);
  if (options.folder.empty()) options.folder = full ? "study-full" : "study-quick";
  options.timeout_seconds = timeout;
  return options;
}

}  // namespace tandem::study

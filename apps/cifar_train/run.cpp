// Wiring: every step that can fail is taken by all ranks, which then agree on going on.
#include "run.h"

#include "claimed_directory.h"
#include "command_line.h"
#include "help_text.h"
#include "settings.h"
#include "training.h"

#include "apps/arguments/arguments.h"

#include "tandem/comm/agreement.h"
#include "tandem/comm/launch/gpu_sharing.h"
#include "tandem/comm/launch/threads.h"
#include "tandem/core/parallel.h"
#include "tandem/kernels/notice.h"
#include "tandem/train/console.h"
#include "tandem/train/process_info.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdio>

namespace tandem::apps {
namespace {

const HelpPage kHelp{
    .program = "cifar_train",
    .summary =
        "Trains a convolutional network on CIFAR-10, CIFAR-100, MNIST, Fashion-MNIST or synthetic images, on one "
        "process or, started by mpirun or srun, on N ranks that share each step's images.",
    .examples = {"cifar_train --dataset synthetic --epochs 3     # no data needed",
                 "mpirun -np 2 cifar_train --log run.jsonl       # CIFAR-10 on two ranks",
                 "cifar_train --dataset fashion-mnist --epochs 3 --save-weights f.safetensors"},
};

void print(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

void note(const std::string& text) {
  if (!text.empty()) fmt::print(stderr, "note: {}\n", text);
}

// A config file that gives the same run: options under their groups. Defaults that follow from other options stand in
// comments, so that they follow those when these are changed, in the file or beside it.
std::string config_text(const OptionTable& table) {
  std::string text = "# cifar_train --config FILE\n# Values behind a # are defaults that follow from the others.\n";
  std::string group;
  for (const Option& option : table.options()) {
    const auto value = option.get();
    if (!value) continue;
    if (option.group != group) text += fmt::format("\n# {}\n", group = option.group);
    const bool follows = !option.given() && value != option.initial;
    text += fmt::format("{}{} = {}\n", follows ? "# " : "", option.name, train::to_toml(*value));
  }
  return text;
}

int answer(Request request, const std::string& help, const OptionTable& table) {
  if (request == Request::help) print(help);
  if (request == Request::version)
    print(fmt::format("cifar_train (Tandem) {}\n", train::build_versions().front().second));
  if (request == Request::print_config) print(config_text(table));
  return 0;
}

}  // namespace

int run(int argc, const char* const* argv, comm::MpiEnvironment& environment, Clock::time_point start) {
  const auto ranks = comm::make_process_group("auto", environment);
  Settings settings;
  Device device;
  OptionTable table;
  describe_options(table, settings);
  const std::string help = help_text(kHelp, table);
  const auto [request, notes] = comm::run_agreed(*ranks, [&] {
    CommandLine asked = parse_command_line(argc, argv, table, {"batch-size", "global-batch-size"});
    resolve(settings, ranks->size());
    if (asked.request == Request::run) {
      check(settings, ranks->size());
      device = choose_device(settings, ranks->local_rank());
      naming_flags([&] {
        kernels::check_implementations(implementations(settings), device);
        autograd::use_products_of(settings.precision, device);
      });
    }
    return asked;
  });
  comm::check_same(*ranks, "configuration",
                   fmt::format("request={}\n", static_cast<int>(request)) + shared_settings(table));
  if (ranks->rank() == 0) std::for_each(notes.begin(), notes.end(), note);
  if (request != Request::run) return ranks->rank() == 0 ? answer(request, help, table) : 0;

  const int fair_share = comm::default_threads(*ranks);  // collective: on ranks that have --threads of their own, too
  set_num_threads(settings.threads > 0 ? static_cast<int>(settings.threads) : fair_share);
  if (!names_device(settings)) device = comm::share_out_gpus(*ranks, device);
  const auto group = comm::make_process_group(settings.backend, environment, device);
  if (group->rank() == 0) {
    if (!group->notice().empty()) kernels::notice(group->notice());  // which says it once
    note(kernels::missing_libraries(implementations(settings), device));
  }
  ClaimedDirectory claimed;  // held until the run has ended
  if (!settings.find_nan) claimed = settle_run_directory(settings, *group);
  return train_and_report(settings, table, config_text(table), device, environment, *group, start, {argv, argv + argc},
                          claimed);
}

}  // namespace tandem::apps

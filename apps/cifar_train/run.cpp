// Wiring: every step that can fail is taken by all ranks, which then agree on going on.
#include "run.h"

#include "claimed_directory.h"
#include "command_line.h"
#include "help_text.h"
#include "settings.h"
#include "training.h"

#include "apps/arguments/arguments.h"
#include "apps/arguments/help_layout.h"
#include "apps/arguments/program.h"

#include "tandem/comm/agreement.h"
#include "tandem/comm/backends/native/native_backend.h"
#include "tandem/comm/backends/threads/thread_ranks.h"
#include "tandem/comm/launch/gpu_sharing.h"
#include "tandem/comm/launch/threads.h"
#include "tandem/comm/transports/simulated/real_time_network.h"
#include "tandem/core/parallel.h"
#include "tandem/core/timeline.h"
#include "tandem/kernels/notice.h"
#include "tandem/train/console.h"
#include "tandem/train/process_info.h"
#include "tandem/train/stderr_line.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <string>

namespace tandem::apps {
namespace {

HelpPage help_of(const std::string& program) {
  return {
      .program = program,
      .summary =
          "Trains a convolutional network on CIFAR-10, CIFAR-100, MNIST, Fashion-MNIST or synthetic images, on one "
          "process or on N ranks that share each step's images: started by mpirun or srun, or as threads (--replicas).",
      .examples = {{program + " --dataset synthetic --epochs 3", "no data needed"},
                   {fmt::format("mpirun -np 2 {} --log run.jsonl", program), "CIFAR-10 on two ranks"},
                   {program + " --replicas 2 --log run.jsonl", "the same in one process"},
                   {program + " --dataset fashion-mnist --epochs 3 --save-weights f.safetensors", ""}},
  };
}

void print(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

void note(const std::string& text) {
  if (!text.empty()) train::print_to_stderr(fmt::format("note: {}", text));
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

/// Of the defaults, whatever the command line says.
std::string help_of_defaults(const std::string& program) {
  Settings settings;
  OptionTable table;
  describe_options(table, settings);
  return help_text(help_of(program), table, help_columns());
}

int answer(Request request, const std::string& program, const OptionTable& table) {
  if (request == Request::help) print(help_of_defaults(program));
  if (request == Request::version)
    print(fmt::format("{} (Tandem) {}\n", program, train::build_versions().front().second));
  if (request == Request::print_config) print(config_text(table));
  return 0;
}

/// What all ranks of this process are given.
struct Start {
  int argc;
  const char* const* argv;
  comm::MpiEnvironment& environment;
  Clock::time_point time;
  ConfigReader& configs;
  SharedData data{};
};

CommandLine parse(int argc, const char* const* argv, ConfigReader& configs, OptionTable& table) {
  return parse_command_line(argc, argv, table, {"batch-size", "global-batch-size"}, configs);
}

CommandLine parse(Start& start, OptionTable& table) { return parse(start.argc, start.argv, start.configs, table); }

/// The ranks that a command line asks this process for. One where something is wrong with it, which a run says then.
struct Replicas {
  int count = 1;
  std::string algorithm = "auto";
  std::string network = {};
  comm::WatchOptions watch = {};
};

void check_replicas(const Settings& s, const comm::MpiEnvironment& environment);

Replicas replicas_asked_for(Start& start) {
  Settings settings;
  OptionTable table;
  describe_options(table, settings);
  try {
    if (parse(start, table).request != Request::run) return {};
    check_replicas(settings, start.environment);
    return {static_cast<int>(settings.replicas),
            settings.comm_algorithm,
            settings.network,
            {.timeout = settings.comm_timeout.value_or(comm::default_timeout()), .checks = settings.comm_checks}};
  } catch (const Error&) {
    return {};
  }
}

/// The deadline of the command line; nothing for one that has none, or is wrong.
std::optional<double> comm_timeout_asked_for(Start& start) {
  Settings settings;
  OptionTable table;
  describe_options(table, settings);
  try {
    parse(start, table);
    return settings.comm_timeout;
  } catch (const Error&) {
    return std::nullopt;
  }
}

void check_network(const Settings& s, int ranks) {
  if (s.network.empty()) return;
  require(s.interface.empty(),
          "--iface {}: leads to other hosts, and --simulate-network keeps messages on this one; leave one out",
          s.interface);
  const bool sends_ours = s.backend == "auto" || s.backend == "self" || s.backend == "native" || s.backend == "threads";
  require(sends_ours,
          "--simulate-network: holds up messages of backends native and threads, and --backend {} sends its own; leave "
          "one out",
          s.backend);
  require(s.comm_algorithm != "shared-memory",
          "--simulate-network: holds up messages, and --comm-algorithm shared-memory sends none; leave one out");
  try {
    comm::real_time_network(s.network, ranks);
  } catch (const Error& error) {
    fail("--simulate-network: {}", error.what());
  }
}

void check_replicas(const Settings& s, const comm::MpiEnvironment& environment) {
  check_network(s, s.replicas > 1 ? static_cast<int>(s.replicas) : environment.size());
  require(s.replicas > 1 || s.backend != "threads",
          "--backend threads: joins ranks that are threads of one process; start several by --replicas N");
  require(s.comm_algorithm == "auto" || s.backend == "auto" || s.backend == "native" || s.backend == "threads",
          "--comm-algorithm {}: is one of backends native and threads, and --backend {} has its own; leave one out "
          "(--comm-algorithm "
          "auto sets that of a config file aside)",
          s.comm_algorithm, s.backend);
  const bool polls = s.backend == "auto" || s.backend == "native" || s.backend == "threads" || s.backend == "mpi";
  require(s.comm_progress != "thread" || polls,
          "--comm-progress thread: is for backends native, threads and mpi, and --backend {} needs none; leave one out "
          "(--comm-progress auto sets that of a config file aside)",
          s.backend);
  require(
      (!s.tune_comm && s.comm_costs.empty()) || s.backend == "auto" || s.backend == "native" || s.backend == "threads",
      "{}: is for backends native and threads, and --backend {} chooses for itself; leave one out",
      s.tune_comm ? "--tune-comm" : "--comm-costs", s.backend);
  if (s.replicas == 1) return;
  require(environment.size() == 1,
          "--replicas {}: {} started {} processes, which are the ranks already; choose one of both (--replicas 1 sets "
          "that of a config file aside)",
          s.replicas, environment.launch().launcher, environment.size());
  require(s.backend == "auto" || s.backend == "threads",
          "--replicas {}: ranks in one process exchange gradients by backend threads, not {}; leave --backend out",
          s.replicas, s.backend);
}

/// The clock of GPUs, CUPTI's, is one for a process.
void check_recording(const Settings& s, Device device) {
  const bool records = s.profile || !s.trace.empty();
  require(s.replicas == 1 || !records || device.type == DeviceType::cpu,
          "--replicas {}: a {} of GPUs is of one rank per process; start the ranks by mpirun", s.replicas,
          s.profile ? "profile" : "trace");
}

/// A rank's run, `ranks` being the group of all.
int run_rank(Start& start, comm::ProcessGroup& ranks) {
  Settings settings;
  Device device;
  OptionTable table;
  describe_options(table, settings);
  const std::string program = program_name(start.argv);
  const auto [request, notes] = comm::run_agreed(ranks, [&] {
    CommandLine asked = parse(start, table);
    resolve(settings, ranks.size());
    if (asked.request == Request::run) {
      check_replicas(settings, start.environment);
      check(settings, ranks.size());
      device = choose_device(settings, ranks.local_rank());
      check_recording(settings, device);
      naming_flags([&] {
        kernels::check_implementations(implementations(settings), device);
        autograd::use_products_of(settings.precision, device);
      });
    }
    return asked;
  });
  comm::check_same(ranks, "configuration",
                   fmt::format("request={}\n", static_cast<int>(request)) + shared_settings(table));
  if (ranks.rank() == 0) std::for_each(notes.begin(), notes.end(), note);
  if (request != Request::run) return ranks.rank() == 0 ? answer(request, program, table) : 0;

  const int fair_share = comm::default_threads(ranks);  // collective: on ranks that have --threads of their own, too
  set_num_threads(settings.threads > 0 ? static_cast<int>(settings.threads) : fair_share);
  if (!names_device(settings)) device = comm::share_out_gpus(ranks, device);
  std::unique_ptr<comm::ProcessGroup> chosen;
  if (settings.replicas == 1) {
    chosen = comm::make_process_group({.backend = settings.backend,
                                       .device = device,
                                       .algorithm = settings.comm_algorithm,
                                       .network = settings.network,
                                       .progress = settings.comm_progress,
                                       .timeout = settings.comm_timeout,
                                       .checks = settings.comm_checks},
                                      start.environment);
  } else {
    ranks.set_progress(settings.comm_progress);
  }
  comm::ProcessGroup& group = chosen ? *chosen : ranks;
  if (group.rank() == 0) {
    if (!group.notice().empty()) kernels::notice(group.notice());  // which says it once
    note(kernels::missing_libraries(implementations(settings), device));
  }
  ClaimedDirectory claimed;  // held until the run has ended
  if (!settings.find_nan) claimed = settle_run_directory(settings, group);
  if (!settings.run_dir.empty()) comm::save_statuses_to(settings.run_dir + "/hang.bin");
  return train_and_report(settings, table, config_text(table), device, start.environment, group, start.data, start.time,
                          command_words(start.argc, start.argv), claimed);
}

/// Ranks that are threads of this process. The first one's exit code is the program's.
int run_replicas(Start& start, const Replicas& replicas) {
  int code = 0;
  const comm::NativeOptions options = comm::native_options("threads", replicas.algorithm, replicas.network);
  comm::run_thread_ranks(replicas.count, options, replicas.watch, [&](comm::ProcessGroup& ranks) {
    std::optional<TimelineOfThread> own_timeline;
    if (ranks.rank() != 0) own_timeline.emplace();
    const int mine = run_rank(start, ranks);
    if (ranks.rank() == 0) code = mine;
  });
  return code;
}

}  // namespace

std::string interface_asked_for(int argc, const char* const* argv, ConfigReader& configs) {
  Settings settings;
  OptionTable table;
  describe_options(table, settings);
  try {
    return parse(argc, argv, configs, table).request == Request::run ? settings.interface : "";
  } catch (const Error&) {
    return "";
  }
}

int run(int argc, const char* const* argv, comm::MpiEnvironment& environment, Clock::time_point time,
        ConfigReader& configs) {
  Start start{argc, argv, environment, time, configs};
  const Replicas replicas = environment.size() == 1 ? replicas_asked_for(start) : Replicas();
  if (replicas.count > 1) return run_replicas(start, replicas);
  const auto ranks =
      comm::make_process_group({.progress = "poll", .timeout = comm_timeout_asked_for(start)}, environment);
  return run_rank(start, *ranks);
}

}  // namespace tandem::apps

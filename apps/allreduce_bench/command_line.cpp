#include "apps/allreduce_bench/command_line.h"

#include "apps/allreduce_bench/groups.h"
#include "apps/arguments/arguments.h"
#include "tandem/comm/backends.h"
#include "tandem/comm/schedules/all_reduce_algorithms.h"
#include "tandem/comm/transports/simulated/real_time_network.h"
#include "tandem/core/suggest.h"

#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>

namespace tandem::allreduce_bench {

namespace {

using comm::ReduceOp;

constexpr std::array kOps = {ReduceOp::sum, ReduceOp::product, ReduceOp::average, ReduceOp::min, ReduceOp::max};
constexpr std::array kDTypes = {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i32, DType::i64};

/// Options as they are written.
struct Texts {
  std::vector<std::string> collectives{"all_reduce"};
  std::string dtype = "f32", op = "sum", network;
};

template <typename Choices>
auto chosen(std::string_view option, const std::string& text, const Choices& choices) {
  std::vector<std::string_view> names;
  for (const auto choice : choices) names.push_back(name_of(choice));
  const auto found = std::ranges::find(names, text);
  require(found != names.end(), "--{}: {}", option, unknown_name(option, text, names));
  return choices[static_cast<std::size_t>(found - names.begin())];
}

/// Those for CPUs that this build has.
std::vector<std::string> usable_backends() {
  std::vector<std::string> names;
  for (const comm::BackendEntry& entry : comm::backends())
    if (entry.needs.starts_with("MPI") && entry.missing().empty() && entry.name != "nccl")
      names.emplace_back(entry.name);
  if (names.empty()) names.emplace_back("self");
  return names;
}

void add_options(CLI::App& app, Texts& texts, CommandLine& line) {
  BenchOptions& options = line.options;
  app.option_defaults()->always_capture_default();
  const auto list = [&](const char* name, std::vector<std::string>& values, const std::string& help) {
    app.add_option(name, values, help)->delimiter(',');
  };
  const auto number = [&](const char* name, std::int64_t& value, std::int64_t least, std::int64_t most,
                          const char* help) {
    apps::expect_whole_number(*app.add_option(name, value, help), least, most);
  };
  list("--collective", texts.collectives,
       fmt::format("{} or all; with commas between", fmt::join(bench_collective_names(), ", ")));
  list("--backends", options.backends, "Which to compare, with commas between");
  number("--replicas", options.replicas, 1, 128,  // many more take minutes to begin
         "Ranks that are threads of this process, without mpirun: times backend threads");
  list("--algorithms", options.algorithms,
       fmt::format("Of all_reduce by backend native, beside the backends: {}; with commas between",
                   fmt::join(comm::algorithm_names(), ", ")));
  number("--min-bytes", options.min_bytes, 4, std::int64_t{1} << 36, "The first size");
  number("--max-bytes", options.max_bytes, 4, std::int64_t{1} << 36, "The largest size");
  number("--factor", options.factor, 2, 1024, "From one size to the next");
  number("--rounds", options.rounds, 1, 1000000, "Rounds, in which all have their turn");
  app.add_option("--dtype", texts.dtype, "f32, f64, f16, bf16, i32 or i64");
  app.add_option("--op", texts.op, "Of reductions: sum, product, average, min or max");
  app.add_flag("--predict", options.predicts,
               "Measure what messages cost, show what --algorithms take by that, and let by-cost choose by it");
  app.add_flag("--roofline", options.roofline,
               "Also time all_reduce through memory of one host where no rank waits for another: what the machine "
               "allows; and show how much of that the others reach");
  app.add_option(
      "--simulate", texts.network,
      "Time all_reduce on a simulated network, such as \"alpha=50us beta=10Gbit hosts=8x8\": 8 hosts of 8 ranks, "
      "50 us and 10 Gbit/s between them (local-alpha, local-beta: within hosts; link=shared; jitter=10us seed=1; "
      "lose=3-4@2ms). Without mpirun, by its clock; with it, in real time, messages being held up");
  app.add_flag("--connectivity", line.probes_connectivity,
               "Find out which ranks reach each other, at which latency and bandwidth; exit code 2 where some do not");
  app.add_option(
         "--iface", line.interface,
         "The network that ranks of several hosts use (MPI's TCP, Gloo): a network interface's name, an address "
         "in its network, or a subnet such as 10.0.0.0/24")
      ->option_text("NAME|ADDRESS|SUBNET");
  app.add_flag("--json", line.as_json, "Print an object a line, for programs");
  apps::expect_path(*app.add_option("--csv", line.csv_file, "Write the rows to this file"));
  apps::expect_path(*app.add_option("--svg", line.svg_file, "Draw times and bandwidths of the bus to this file"));
}

void check_backends(const std::vector<std::string>& backends) {
  const auto names = comm::backend_names();
  for (const std::string& backend : backends)
    require(std::ranges::find(names, comm::current_backend_name(backend)) != names.end(), "--backends: {}",
            unknown_name("backend", backend, names));
}

void check_algorithms(const std::vector<std::string>& algorithms) {
  const auto names = comm::algorithm_names();
  for (const std::string& algorithm : algorithms)
    require(std::ranges::find(names, algorithm) != names.end(), "--algorithms: {}",
            unknown_name("algorithm", algorithm, names));
}

/// What is of all_reduce alone needs one.
void check_all_reduce(const BenchOptions& options) {
  if (std::ranges::any_of(options.collectives, [](const auto* collective) { return is_all_reduce(*collective); }))
    return;
  const char* const option = options.predicts              ? "--predict"
                             : options.roofline            ? "--roofline"
                             : !options.algorithms.empty() ? "--algorithms"
                                                           : nullptr;
  require(option == nullptr, "{}: it is of all_reduce, which --collective leaves out", option);
}

/// What goes with a simulated network, and what is usual there.
void use_network(const CLI::App& app, const std::string& text, BenchOptions& options, int ranks) {
  constexpr std::int64_t kUsualMost = 1 << 20, kMostMemory = std::int64_t{8} << 30;
  options.in_real_time = ranks > 1;
  for (const char* const option : {"--backends", "--predict", "--roofline"})
    require(app.count(option) == 0, "{}: is not of a simulated network; leave it out, or leave out --simulate", option);
  require(options.in_real_time || app.count("--rounds") == 0,
          "--rounds: is of real ranks; leave it out, or start them by mpirun");
  options.backends.clear();
  try {
    options.network = options.in_real_time ? comm::real_time_network(text, ranks) : comm::parse_network_model(text);
  } catch (const Error& error) {
    fail("--simulate: {}", error.what());
  }
  const comm::NetworkModel& model = *options.network;
  require(model.ranks() > 1, "--simulate: needs two ranks or more; add hosts=8x8, or hosts=16");
  require(options.collectives.size() == 1 && is_all_reduce(*options.collectives.front()),
          "--simulate: is of all_reduce alone; leave out --collective");
  require(std::ranges::all_of(options.algorithms, is_of_messages),
          "--simulate: needs --algorithms of messages, such as ring,direct,by-cost");
  for (const comm::AllReduceAlgorithm& algorithm : comm::all_reduce_algorithms())
    if (app.count("--algorithms") == 0 && (algorithm.name != "two-level" || model.ranks_per_host > 1))
      options.algorithms.emplace_back(algorithm.name);
  if (app.count("--max-bytes") == 0) options.max_bytes = std::max(options.min_bytes, kUsualMost);
  require(options.max_bytes <= kMostMemory / model.ranks(),
          "--max-bytes {}: {} simulated ranks have at most {} bytes each", options.max_bytes, model.ranks(),
          kMostMemory / model.ranks());
}

/// Ranks that are threads have one backend.
void use_replicas(const CLI::App& app, BenchOptions& options, int ranks) {
  require(ranks == 1, "--replicas {}: {} processes were started, which are the ranks already; choose one of both",
          options.replicas, ranks);
  for (const char* const option : {"--algorithms", "--predict", "--simulate", "--iface"})
    require(app.count(option) == 0, "{}: is of ranks that are processes; leave it out, or leave out --replicas",
            option);
  require(app.count("--backends") == 0 || options.backends == std::vector<std::string>{"threads"},
          "--replicas {}: ranks in one process have backend threads, not {}; leave --backends out", options.replicas,
          fmt::join(options.backends, ","));
  options.backends = {"threads"};
}

/// The probe goes by messages of its own.
void check_connectivity(const CLI::App& app, int ranks) {
  for (const char* const option :
       {"--collective", "--backends", "--algorithms", "--min-bytes", "--max-bytes", "--factor", "--rounds", "--dtype",
        "--op", "--replicas", "--predict", "--roofline", "--simulate", "--svg"})
    require(app.count(option) == 0, "{}: is not of --connectivity; leave one of both out", option);
  require(ranks > 1, "--connectivity: there is one rank; start several by mpirun or srun");
}

/// Whether two paths name one file, which may not be there yet.
bool is_one_place(const std::string& a, const std::string& b) {
  namespace fs = std::filesystem;
  std::error_code unknown;
  if (fs::equivalent(a, b, unknown)) return true;
  const fs::path one = fs::weakly_canonical(fs::absolute(a, unknown), unknown),
                 other = fs::weakly_canonical(fs::absolute(b, unknown), unknown);
  return a == b || (!one.empty() && one == other);
}

}  // namespace

CommandLine read_before_start(int argc, const char* const* argv) {
  Texts texts;
  CommandLine line;
  line.options.backends = usable_backends();
  CLI::App app;
  add_options(app, texts, line);
  try {
    if (apps::read_arguments(app, argc, argv)) return line;
  } catch (const Error&) {
    return {};
  }
  return {};
}

std::optional<CommandLine> read_command_line(int argc, const char* const* argv, int ranks) {
  Texts texts;
  CommandLine line;
  BenchOptions& options = line.options;
  options.backends = usable_backends();
  CLI::App app("Times collectives, backend beside backend, between the ranks that mpirun starts");
  add_options(app, texts, line);
  if (!apps::parse_arguments(app, argc, argv)) return std::nullopt;
  require(app.count("--iface") == 0 || !line.interface.empty(),
          "--iface: it is empty; give a network interface's name, an address or a subnet, or leave it out");
  if (line.probes_connectivity) {
    check_connectivity(app, ranks);
    return line;
  }
  check_backends(options.backends);
  if (options.replicas > 1) use_replicas(app, options, ranks);
  require(options.replicas > 1 || std::ranges::find(options.backends, "threads") == options.backends.end(),
          "--backends threads: joins ranks that are threads of one process; start several by --replicas N");
  try {
    const bool has_several_ranks = ranks > 1 || options.replicas > 1 || !texts.network.empty();
    options.collectives = find_collectives(texts.collectives, has_several_ranks ? 2 : 1);
  } catch (const Error& error) {
    fail("--collective: {}", error.what());
  }
  check_algorithms(options.algorithms);
  check_all_reduce(options);
  if (app.count("--simulate") > 0) use_network(app, texts.network, options, ranks);
  require(!options.predicts || std::ranges::any_of(options.algorithms, is_of_messages),
          "--predict: needs --algorithms of messages, such as ring,direct,by-cost");
  options.dtype = chosen("dtype", texts.dtype, kDTypes);
  require(!options.has_virtual_clock() || !is_half(options.dtype),
          "--dtype {}: --simulate without mpirun has no halves, which ranks send and add as f32; choose f32, f64, i32 "
          "or i64",
          name_of(options.dtype));
  options.op = chosen("op", texts.op, kOps);
  const bool reduces = std::ranges::any_of(options.collectives, &BenchCollective::reduces);
  require(options.op != ReduceOp::average || is_floating(options.dtype) || !reduces,
          "--op average: needs a floating --dtype, not {}", name_of(options.dtype));
  require(options.op != ReduceOp::average || !options.has_virtual_clock(),
          "--op average: --simulate without mpirun follows schedules, which divide nothing; choose sum");
  require(options.min_bytes <= options.max_bytes, "--min-bytes {} is more than --max-bytes {}", options.min_bytes,
          options.max_bytes);
  require(line.csv_file.empty() || line.svg_file.empty() || !is_one_place(line.csv_file, line.svg_file),
          "--csv and --svg are both {}: name two files", line.csv_file);
  return line;
}

}  // namespace tandem::allreduce_bench

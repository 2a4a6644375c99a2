// allreduce_bench: how long all-reduces take, backend beside backend.
#include "bench.h"

#include "apps/arguments/arguments.h"
#include "apps/arguments/program.h"
#include "tandem/comm/agreement.h"
#include "tandem/comm/backends.h"
#include "tandem/comm/launch/threads.h"
#include "tandem/core/suggest.h"

#include <fmt/core.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

namespace {

using namespace tandem;
using apps::BenchOptions;
using apps::BenchRow;
using comm::ReduceOp;

constexpr std::array kOps = {ReduceOp::sum, ReduceOp::product, ReduceOp::min, ReduceOp::max};
constexpr std::array kDTypes = {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i32, DType::i64};

struct CommandLine {
  BenchOptions options;
  bool as_json = false;
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
  return names;
}

/// Nothing where help was asked for.
std::optional<CommandLine> read(int argc, char** argv) {
  CommandLine line;
  BenchOptions& options = line.options;
  std::string dtype = "f32", op = "sum";
  options.backends = usable_backends();
  CLI::App app("Times all-reduces, backend beside backend, between the ranks that mpirun starts");
  app.option_defaults()->always_capture_default();
  app.add_option("--backends", options.backends, "Which to compare, with commas between")->delimiter(',');
  app.add_option("--algorithms", options.algorithms,
                 fmt::format("Of backend native, beside the backends: {}; with commas between",
                             fmt::join(comm::algorithm_names(), ", ")))
      ->delimiter(',');
  apps::expect_whole_number(*app.add_option("--min-bytes", options.min_bytes, "The first size"), 4,
                            std::int64_t{1} << 36);
  apps::expect_whole_number(*app.add_option("--max-bytes", options.max_bytes, "The largest size"), 4,
                            std::int64_t{1} << 36);
  apps::expect_whole_number(*app.add_option("--factor", options.factor, "From one size to the next"), 2, 1024);
  apps::expect_whole_number(*app.add_option("--rounds", options.rounds, "Rounds, in which all have their turn"), 1,
                            1000000);
  app.add_option("--dtype", dtype, "f32, f64, f16, bf16, i32 or i64");
  app.add_option("--op", op, "sum, product, min or max");
  app.add_flag("--predict", options.predicts,
               "Measure what messages cost, show what --algorithms take by that, and let by-cost choose by it");
  app.add_flag("--json", line.as_json, "Print an object a line, for programs");
  if (!apps::parse_arguments(app, argc, argv)) return std::nullopt;
  for (const std::string& backend : options.backends) {
    const auto names = comm::backend_names();
    require(std::ranges::find(names, comm::current_backend_name(backend)) != names.end(), "--backends: {}",
            unknown_name("backend", backend, names));
  }
  for (const std::string& algorithm : options.algorithms) {
    const auto names = comm::algorithm_names();
    require(std::ranges::find(names, algorithm) != names.end(), "--algorithms: {}",
            unknown_name("algorithm", algorithm, names));
  }
  const auto by_messages = [](const std::string& name) { return name != "auto" && name != "shared-memory"; };
  require(!options.predicts || std::ranges::any_of(options.algorithms, by_messages),
          "--predict: needs --algorithms of messages, such as ring,direct,by-cost");
  options.dtype = chosen("dtype", dtype, kDTypes);
  options.op = chosen("op", op, kOps);
  require(options.min_bytes <= options.max_bytes, "--min-bytes {} is more than --max-bytes {}", options.min_bytes,
          options.max_bytes);
  return line;
}

void print_json(const BenchRow& row, int ranks) {
  const auto time_of = [&](const apps::BenchTime& time) {
    const double rate = static_cast<double>(row.bytes) / time.median;
    return nlohmann::ordered_json{{"seconds", time.median},
                                  {"least_seconds", time.least},
                                  {"algbw", rate},
                                  {"busbw", rate * apps::bus_factor(ranks)}};
  };
  nlohmann::ordered_json json = {{"bytes", row.bytes},
                                 {"ranks", ranks},
                                 {"backend", row.backend},
                                 {"shared", row.shared},
                                 {"out_of_place", time_of(row.out_of_place)},
                                 {"in_place", time_of(row.in_place)},
                                 {"wrong", row.wrong}};
  if (row.predicted > 0.0) json["predicted_seconds"] = row.predicted;
  if (!row.chosen.empty()) json["chosen"] = row.chosen;
  fmt::print("{}\n", json.dump());
}

void print_header(const BenchOptions& options, int ranks) {
  fmt::print(
      "all_reduce {} {}, {} ranks: median of {} rounds, slowest rank; us, and GB/s of the algorithm and of the bus\n",
      name_of(options.op), name_of(options.dtype), ranks, options.rounds);
  fmt::print("{:>12}  {:<26} {:>30} {:>30} {:>6}{}\n", "bytes", "backend", "out of place", "in place", "wrong",
             options.predicts ? "  predicted" : "");
}

void print_row(const BenchRow& row, int ranks) {
  const auto text_of = [&](const apps::BenchTime& time) {
    const double rate = static_cast<double>(row.bytes) / time.median / 1e9;
    return fmt::format("{:>12.1f} {:>8.2f} {:>8.2f}", time.median * 1e6, rate, rate * apps::bus_factor(ranks));
  };
  std::string predicted;
  if (row.predicted > 0.0)
    predicted = fmt::format(" {:>10.1f}{}", row.predicted * 1e6, row.chosen.empty() ? "" : "  " + row.chosen);
  fmt::print("{:>12}  {:<26} {} {} {:>6}{}\n", row.bytes, row.backend + (row.shared ? ", shared" : ""),
             text_of(row.out_of_place), text_of(row.in_place), row.wrong, predicted);
  std::fflush(stdout);
}

void print_predictions(const apps::PredictionSummary& summary) {
  if (summary.count == 0) return;  // on other ranks than 0, too
  fmt::print("predictions, from 64 KiB on, in place: the median error of {} is {:.0f} %", summary.count,
             summary.median_error * 100.0);
  if (summary.worst_choice > 0.0)
    fmt::print(
        "; what by-cost chose takes {:.2f} times as long as the best (the median of the sizes; at most {:.2f} times)",
        summary.median_choice, summary.worst_choice);
  fmt::print("\n");
}

int run(int argc, char** argv, comm::MpiEnvironment& environment) {
  const auto group = comm::make_process_group("auto", environment);
  const auto line = comm::run_agreed(*group, [&]() -> std::optional<CommandLine> {
    // One rank shows the help.
    if (group->rank() == 0 || std::none_of(argv + 1, argv + argc, [](const char* word) {
          return std::string_view(word) == "--help" || std::string_view(word) == "-h";
        }))
      return read(argc, argv);
    return std::nullopt;
  });
  if (!line) return 0;
  const int ranks = environment.size();
  if (group->rank() == 0 && !line->as_json) print_header(line->options, ranks);
  std::int64_t wrong = 0;
  std::vector<BenchRow> rows;
  apps::run_bench(environment, line->options, [&](const BenchRow& row) {
    wrong += row.wrong;
    rows.push_back(row);
    line->as_json ? print_json(row, ranks) : print_row(row, ranks);
  });
  if (line->options.predicts && !line->as_json) print_predictions(apps::summarize_predictions(rows));
  if (wrong > 0) fmt::print(stderr, "error: {} elements are wrong\n", wrong);
  return wrong > 0 ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  apps::hold_standard_streams();
  comm::undo_default_binding();
  return comm::run_program(
      [&](comm::MpiEnvironment& environment) { return apps::checked_output(run(argc, argv, environment)); });
}

// allreduce_bench: how long collectives take, backend beside backend.
#include "apps/allreduce_bench/bench.h"
#include "apps/allreduce_bench/command_line.h"
#include "apps/allreduce_bench/connectivity.h"
#include "apps/allreduce_bench/groups.h"
#include "apps/allreduce_bench/predictions.h"
#include "apps/allreduce_bench/reports.h"
#include "apps/allreduce_bench/simulated.h"
#include "apps/arguments/program.h"
#include "tandem/comm/agreement.h"
#include "tandem/comm/launch/run_thread_ranks.h"
#include "tandem/comm/launch/threads.h"
#include "tandem/core/parallel.h"
#include "tandem/layers/file.h"
#include "tandem/train/stderr_line.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>

namespace {

using namespace tandem;
using namespace tandem::allreduce_bench;

/// One rank shows the help.
bool asks_for_help(int argc, char** argv) {
  return std::any_of(argv + 1, argv + argc, [](const char* word) {
    return std::string_view(word) == "--help" || std::string_view(word) == "-h";
  });
}

/// A file that cannot be written is found out before minutes of work, not after. Rank 0 writes; all throw alike.
void check_files(comm::ProcessGroup& group, const CommandLine& line) {
  std::string fault;
  for (const std::string& path : {line.csv_file, line.svg_file}) {
    if (group.rank() != 0 || path.empty() || !fault.empty()) continue;
    try {
      const layers::AtomicFile probe(path);
    } catch (const Error& error) {
      fault = error.what();
    }
  }
  fault = group.all_gather_bytes(fault).front();
  if (!fault.empty()) throw comm::AgreedError(fault);
}

void write_if_named(const std::string& path, const std::string& text) {
  if (!path.empty()) layers::write_file(path, text);
}

void print(const std::string& text) {
  fmt::print("{}", text);
  std::fflush(stdout);
}

/// Ranks that may not reach each other: none waits for another.
int run_probe(int argc, char** argv, comm::MpiEnvironment& environment) {
  std::optional<CommandLine> line;
  try {
    line = read_command_line(argc, argv, environment.size());
  } catch (const Error& error) {
    throw comm::AgreedError(error.what());  // all have the same words
  }
  const comm::ProbeOptions options;
  const comm::Connectivity all = comm::probe_connectivity(environment, options);
  if (environment.rank() == 0) {
    if (line->as_json)
      print(json_lines(all));
    else
      print(comm::text_of(all));
    write_if_named(line->csv_file, csv_report(all));
  }
  if (all.is_complete()) return 0;
  const std::string complaint = comm::complaint_of(all, options);
  if (!complaint.empty() && (all.size() <= options.most_ranks || environment.launch().local_rank == 0))
    train::print_to_stderr("error: " + complaint);
  std::fflush(nullptr);
  constexpr std::chrono::seconds kForOthers{1};  // what they have to say
  std::this_thread::sleep_for(kForOthers);
  environment.abort(2);  // messages are still under way
}

/// With what keeps `native` from being as fast as it could be.
void run_compared(const std::vector<NamedGroup>& groups, const BenchOptions& options,
                  const std::function<void(const BenchRow&)>& show) {
  for (const NamedGroup& one : groups) {
    const std::string obstacle = one.group->sharing_obstacle();
    if (one.group->rank() == 0 && !obstacle.empty())
      train::print_to_stderr(fmt::format("note: {} copies tensors through a window: {}", one.name, obstacle));
  }
  run_bench(groups, options, show);
}

int run(int argc, char** argv, bool probes_connectivity, comm::MpiEnvironment& environment) {
  if (probes_connectivity) return run_probe(argc, argv, environment);
  const auto group = comm::make_process_group("auto", environment);
  const auto line = comm::run_agreed(*group, [&]() -> std::optional<CommandLine> {
    if (group->rank() == 0 || !asks_for_help(argc, argv)) return read_command_line(argc, argv, group->size());
    return std::nullopt;
  });
  if (!line) return 0;
  check_files(*group, *line);
  const BenchOptions& options = line->options;
  const int ranks = options.has_virtual_clock() ? options.network->ranks()
                    : options.replicas > 1      ? static_cast<int>(options.replicas)
                                                : group->size();
  const Table table(options, ranks);
  std::vector<BenchRow> rows;
  std::int64_t wrong = 0;
  const auto show = [&](const BenchRow& row) {
    if (line->as_json) {
      print(json_line(row, options, ranks) + "\n");
    } else {
      const bool is_first = rows.empty() || rows.back().collective != row.collective;
      const std::string above = rows.empty() ? "" : "\n";
      print((is_first ? above + table.heading(*row.collective) : "") + table.line(row));
    }
    wrong += row.wrong;
    rows.push_back(row);
  };
  if (options.has_virtual_clock())
    run_simulated_bench(options, show);
  else if (options.replicas > 1)
    comm::run_thread_ranks(ranks, [&](comm::ProcessGroup& threads) {
      set_num_threads(comm::default_threads(threads));
      const std::shared_ptr<comm::ProcessGroup> not_owned(&threads, [](comm::ProcessGroup*) {});
      run_bench({{std::string(threads.name()), not_owned}}, options, show);
    });
  else
    run_compared(make_groups(environment, options), options, show);
  if (group->rank() != 0) return 0;
  const std::string predictions = prediction_lines(rows);
  if (!line->as_json && !predictions.empty()) print("\n" + predictions);
  write_if_named(line->csv_file, csv_report(rows, options, ranks));
  write_if_named(line->svg_file, line->svg_file.empty() ? "" : svg_report(rows, options, ranks));
  if (wrong > 0) train::print_to_stderr(fmt::format("error: {} elements are wrong", wrong));
  return wrong > 0 ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  apps::hold_standard_streams();
  comm::undo_default_binding();
  const CommandLine early = read_before_start(argc, argv);
  return apps::run_ranks_program(
      [&](comm::MpiEnvironment& environment) { return run(argc, argv, early.probes_connectivity, environment); },
      early.interface);
}

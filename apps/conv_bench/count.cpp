// What each contestant moves, in the simulator.
#include "apps/conv_bench/count.h"

#include "apps/conv_bench/bench.h"
#include "apps/conv_bench/reports.h"
#include "tandem/core/device_query.h"
#include "tandem/layers/file.h"

#include <nlohmann/json.hpp>

namespace tandem::conv_bench {

Counts count(const std::function<void()>& work) {
  Counts counts;
  for (const KernelCounts& kernel : count_kernels(work)) {
    counts.launches += kernel.launches;
    counts.bytes_read += kernel.bytes_read;
    counts.bytes_written += kernel.bytes_written;
  }
  return counts;
}

int run_count(const BenchSettings& settings, std::FILE* out, std::FILE* problems) {
  using nlohmann::json;
  json rows = json::array();
  fmt::print(out, "{}; bytes of global memory by requests of warps; least: each tensor once\n",
             name_of(settings.device));
  fmt::print(out, "{:<6}{:<16}{:>9}{:>12}{:>12}{:>12}{:>9}\n", "pass", "implementation", "launches", "KB read",
             "KB written", "KB least", "times");
  Report report;
  report.skipped = settings.missing;
  Verdicts verdicts;
  for_each_layer(settings, verdicts, report, [&](const Workload& workload, const std::vector<Entrant>& entrants) {
    fmt::print(out, "{}, batch {}, {}\n", workload.layer.text(), workload.batch, name_of(workload.dtype()));
    restore_forward_results(workload);
    for (const Pass pass : settings.passes) {
      for (const Entrant& entrant : entrants) {
        if (!entrant.can_do(pass)) continue;
        const Counts counts = count(entrant.work(pass));
        const double least = sum_of(parts_of(workload, pass)).bytes;
        const auto all = static_cast<double>(counts.bytes_read + counts.bytes_written);
        fmt::print(out, "{:<6}{:<16}{:>9}{:>12.1f}{:>12.1f}{:>12.1f}{:>9.2f}\n", name_of(pass),
                   entrant.contestant->name, counts.launches, 1e-3 * static_cast<double>(counts.bytes_read),
                   1e-3 * static_cast<double>(counts.bytes_written), 1e-3 * least, all / least);
        rows.push_back({{"layer", workload.layer.text()},
                        {"batch", workload.batch},
                        {"dtype", name_of(workload.dtype())},
                        {"pass", name_of(pass)},
                        {"impl", entrant.contestant->name},
                        {"launches", counts.launches},
                        {"bytes_read", counts.bytes_read},
                        {"bytes_written", counts.bytes_written},
                        {"bytes_least", least}});
      }
    }
    std::fflush(out);
  });
  if (!settings.json_file.empty()) layers::write_file(settings.json_file, json{{"counts", rows}}.dump(1) + "\n");
  return tell_problems(report, problems);
}

}  // namespace tandem::conv_bench

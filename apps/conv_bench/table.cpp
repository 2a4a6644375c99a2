// The table on the terminal.
#include "apps/conv_bench/reports.h"
#include "apps/measure/quantile.h"
#include "tandem/core/device_query.h"
#include "tandem/core/parallel.h"

#include <cmath>
#include <map>

namespace tandem::conv_bench {

namespace {

using apps::median;
using apps::quantile;

std::string name_of_device(Device device) {
  for (const DeviceDescription& known : list_devices())
    if (known.device == device) return known.name;
  return tandem::name_of(device);
}

/// Per cent. As no ceiling of operations is beaten, what takes less than the floor has its data from the caches.
std::string share_of_floor(std::optional<double> floor_seconds, double seconds) {
  if (!floor_seconds) return "-";
  return *floor_seconds > seconds ? "cached" : fmt::format("{:.1f}", 100.0 * *floor_seconds / seconds);
}

std::string microseconds(const std::vector<double>& seconds, double q) {
  return seconds.empty() ? "-" : fmt::format("{:.1f}", 1e6 * quantile(seconds, q));
}

}  // namespace

std::string raised_ceilings(const BenchSettings& settings, const Report& report) {
  const Ceilings &before = settings.ceilings, &after = report.ceilings;
  return fmt::format(
      "ceilings were beaten, so shares above are of less than the machine can do: {:.4g} TFLOP/s f32, {:.4g} half, now "
      "{:.4g} and {:.4g} ({}); files have shares of these\n",
      1e-12 * before.flops_f32, 1e-12 * before.flops_half, 1e-12 * after.flops_f32, 1e-12 * after.flops_half,
      after.source);
}

std::string table_heading(const BenchSettings& settings) {
  std::string text = fmt::format("{} ({})", tandem::name_of(settings.device), name_of_device(settings.device));
  if (settings.device.type == DeviceType::cpu) text += fmt::format(", {} threads", num_threads());
  const Ceilings& ceilings = settings.ceilings;
  if (ceilings.bandwidth > 0.0 && ceilings.flops_f32 > 0.0) {
    text += fmt::format("; ceilings {:.4g} TFLOP/s f32, {:.4g} half, {:.4g} GB/s ({})", 1e-12 * ceilings.flops_f32,
                        1e-12 * ceilings.flops_half, 1e-9 * ceilings.bandwidth, ceilings.source);
  }
  for (const std::string& missing : settings.missing) text += fmt::format("\nleft out: {}", missing);
  text +=
      fmt::format("\n{} groups in turns; us: median of groups, hot unless said otherwise\n", settings.protocol.groups);
  text += fmt::format("{:<6}{:<16}{:>10}{:>10}{:>10}{:>11}{:>10}{:>9}{:>9}{:>9}{:>9}\n", "pass", "implementation", "us",
                      "p10", "p90", "cold us", "GFLOP/s", "done", "GB/s", "% floor", "library");
  return text;
}

std::string table_rows(const std::vector<Result>& of_layer) {
  std::string text;
  const Result* last = nullptr;
  for (const Result& result : of_layer) {
    if (last == nullptr || !(last->layer.name == result.layer.name && last->batch == result.batch &&
                             last->dtype == result.dtype && last->layer.net == result.layer.net)) {
      text += fmt::format("{}, batch {}, {}; {}\n", result.layer.text(), result.batch, name_of(result.dtype),
                          result.clocks);
    }
    const double seconds = median(result.seconds());
    const std::optional<double> ratio = ratio_to_library(result, of_layer);
    text += fmt::format("{:<6}{:<16}{:>10}{:>10}{:>10}{:>11}{:>10.1f}{:>9.1f}{:>9.1f}{:>9}{:>9}\n",
                        name_of(result.pass), result.impl, microseconds(result.seconds(), 0.5),
                        microseconds(result.seconds(), 0.1), microseconds(result.seconds(), 0.9),
                        microseconds(result.cold, 0.5), 1e-9 * result.work.flops / seconds,
                        1e-9 * result.work.done_flops / seconds, 1e-9 * result.work.bytes / seconds,
                        share_of_floor(result.floor_seconds, seconds), ratio ? fmt::format("{:.2f}", *ratio) : "-");
    last = &result;
  }
  return text;
}

std::string table_summary(const std::vector<Result>& results) {
  struct Mean {
    double logarithms = 0.0;
    int count = 0;
  };
  std::map<std::pair<std::string, Pass>, Mean> means;
  for (const Result& result : results) {
    if (result.is_library) continue;
    if (const std::optional<double> ratio = ratio_to_library(result, results)) {
      Mean& mean = means[{result.impl, result.pass}];
      mean.logarithms += std::log(*ratio);
      ++mean.count;
    }
  }
  std::string text;
  for (const auto& [key, mean] : means) {
    text += fmt::format("geometric mean of {} over the best library, {}: {:.2f} ({} layers)\n", key.first,
                        name_of(key.second), std::exp(mean.logarithms / mean.count), mean.count);
  }
  return text;
}

}  // namespace tandem::conv_bench

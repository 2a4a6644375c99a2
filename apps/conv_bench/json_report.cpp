// Results as JSON, and files that appear whole.
#include "apps/conv_bench/reports.h"
#include "apps/measure/quantile.h"
#include "tandem/core/device_query.h"
#include "tandem/core/parallel.h"
#include "tandem/layers/file.h"
#include "tandem/train/process_info.h"

#include <nlohmann/json.hpp>

namespace tandem::conv_bench {

namespace {

using nlohmann::json;

json layer_json(const Result& result) {
  const BenchLayer& layer = result.layer;
  return {{"net", layer.net},    {"name", layer.name},     {"n", result.batch},    {"c", layer.c},
          {"h", layer.h},        {"w", layer.w},           {"k", layer.k},         {"r", layer.r},
          {"s", layer.s},        {"stride", layer.stride}, {"pad", layer.padding}, {"first", layer.is_first},
          {"count", layer.count}};
}

json times_json(const std::vector<double>& seconds) {
  if (seconds.empty()) return nullptr;
  return {{"median", apps::median(seconds)},
          {"p10", apps::quantile(seconds, 0.1)},
          {"p90", apps::quantile(seconds, 0.9)},
          {"groups", seconds}};
}

json result_json(const Result& result, const std::vector<Result>& all) {
  const double seconds = apps::median(result.seconds());
  const std::optional<double> ratio = ratio_to_library(result, all);
  return {{"layer", layer_json(result)},
          {"dtype", name_of(result.dtype)},
          {"pass", name_of(result.pass)},
          {"impl", result.impl},
          {"library", result.is_library},
          {"hot_seconds", times_json(result.hot)},
          {"cold_seconds", times_json(result.cold)},
          {"launches", result.launches},
          {"graph", result.is_recorded},
          {"clocks", result.clocks},
          {"flops", result.work.flops},
          {"done_flops", result.work.done_flops},
          {"bytes", result.work.bytes},
          {"flops_per_second", result.work.flops / seconds},
          {"bytes_per_second", result.work.bytes / seconds},
          {"floor_seconds", result.floor_seconds ? json(*result.floor_seconds) : json()},
          {"ratio_to_best_library", ratio ? json(*ratio) : json()}};
}

}  // namespace

std::string json_report(const BenchSettings& settings, const Report& report) {
  json versions;
  for (const auto& [name, version] : train::build_versions()) versions[name] = version;
  json results = json::array();
  for (const Result& result : report.results) results.push_back(result_json(result, report.results));
  std::string device;
  for (const DeviceDescription& known : list_devices())
    if (known.device == settings.device) device = known.name;
  const json whole{{"program", "conv_bench"},
                   {"versions", versions},
                   {"time", train::utc_time()},
                   {"device", name_of(settings.device)},
                   {"device_name", device},
                   {"cuda", cuda_versions()},
                   {"threads", num_threads()},
                   {"ceilings",
                    {{"flops_f32", settings.ceilings.flops_f32},
                     {"flops_half", settings.ceilings.flops_half},
                     {"bandwidth", settings.ceilings.bandwidth},
                     {"source", settings.ceilings.source}}},
                   {"groups", settings.protocol.groups},
                   {"warmup", settings.protocol.warmup},
                   {"complete", report.complete},
                   {"results", results},
                   {"wrong", report.wrong},
                   {"skipped", report.skipped}};
  return whole.dump(1) + "\n";
}

}  // namespace tandem::conv_bench

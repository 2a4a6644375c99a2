// What benchmarks tell as JSON: an object a line, or a file.
#include "apps/study/bench_run.h"

#include "tandem/train/report/json_fields.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <sstream>

namespace tandem::study {
namespace {

using train::report::Json;
using train::report::NumberTable;

constexpr std::int64_t kMostJson = std::int64_t{1} << 26;

std::string file_of_convolutions(const std::string& folder) {
  return (std::filesystem::path(folder) / "conv_bench.json").string();
}

NumberTable convolution_figures_in(const std::string& folder) {
  const std::string file = file_of_convolutions(folder);
  std::error_code unknown;
  return std::filesystem::exists(file, unknown) ? convolution_figures(train::report::read_text(file, kMostJson))
                                                : NumberTable();
}

constexpr Bench kBenches[] = {
    {"allreduce_bench", 1.5,  // mostly the start of its ranks
     [](const std::string& /*folder*/) { return std::vector<std::string>{"--json"}; },
     [](const std::string& /*folder*/, const std::string& output) { return all_reduce_figures(output); }},
    {"conv_bench", 2.0,
     [](const std::string& folder) { return std::vector<std::string>{"--json=" + file_of_convolutions(folder)}; },
     [](const std::string& folder, const std::string& /*output*/) { return convolution_figures_in(folder); }},
};

/// Whether a field is a list that has something.
bool has_entries(const Json& whole, const char* name) {
  const Json* const list = train::report::find_field(whole, name);
  return list != nullptr && list->is_array() && !list->empty();
}

bool has_one_impl(const Json& results) {
  return std::ranges::all_of(results, [first = train::report::text_field(results.front(), "impl")](const Json& result) {
    return train::report::text_field(result, "impl") == first;
  });
}

/// Of those of one pass: kMissing where a convolution has none, and of no convolutions.
double seconds_of(const Json& results, std::string_view pass) {
  double sum = 0.0;
  bool has_some = false;
  for (const Json& result : results) {
    if (train::report::text_field(result, "pass") != pass) continue;
    const Json* const layer = train::report::find_field(result, "layer");
    const Json* times = train::report::find_field(result, "hot_seconds");
    if (times == nullptr || times->is_null()) times = train::report::find_field(result, "cold_seconds");
    if (layer == nullptr || times == nullptr) return train::report::kMissing;
    const double seconds = train::report::number_field(*times, "median") * train::report::number_field(*layer, "count");
    sum += seconds;
    has_some = true;
  }
  return has_some ? sum : train::report::kMissing;
}

}  // namespace

std::span<const Bench> benches() { return kBenches; }

const Bench* find_bench(std::string_view program) {
  const auto* const found = std::ranges::find(kBenches, program, &Bench::program);
  return found == std::end(kBenches) ? nullptr : found;
}

NumberTable all_reduce_figures(const std::string& output) {
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with('{')) continue;
    const Json json = train::parse_json(line);
    const Json* const in_place = train::report::find_field(json, "in_place");
    if (in_place == nullptr) continue;
    const double seconds = train::report::number_field(*in_place, "seconds");
    if (!std::isfinite(seconds)) continue;
    return {{"all_reduce_seconds", seconds}, {"bus_bandwidth", train::report::number_field(*in_place, "busbw")}};
  }
  return {};
}

NumberTable convolution_figures(const std::string& json) {
  const Json whole = train::parse_json(json);
  const Json* const complete = train::report::find_field(whole, "complete");
  if (complete == nullptr || *complete != true || !has_entries(whole, "results")) return {};
  const Json* const results = train::report::find_field(whole, "results");
  if (has_entries(whole, "skipped") || has_entries(whole, "wrong") || !has_one_impl(*results)) return {};
  return {{"conv_forward_seconds", seconds_of(*results, "fwd")},
          {"conv_backward_seconds", seconds_of(*results, "bwd")}};
}

}  // namespace tandem::study

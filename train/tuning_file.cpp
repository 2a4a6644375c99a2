// The tuning file is JSON: {"format", "version", "machine", "passes": [{"device", "pass", "dtype", "geometry", "work",
// "chosen", "microseconds": {candidate: time}}]}; "work" is what a pass does beside the convolution.
#include "tandem/train/tuning_file.h"

#include "tandem/core/device_query.h"
#include "tandem/core/error.h"
#include "tandem/core/parallel.h"
#include "tandem/kernels/conv/cudnn/conv_library.h"
#include "tandem/kernels/conv/tuning/tuner.h"
#include "tandem/kernels/float32_products.h"
#include "tandem/train/measured_file.h"
#include "tandem/train/process_info.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <vector>

namespace tandem::train {

namespace {

using Json = nlohmann::ordered_json;
using kernels::ConvGeometry;
using kernels::PassKind;
using kernels::TunedWork;
using kernels::TuningKey;
using kernels::TuningResult;

// Version 1 had no "work". A pass takes about a KiB, and JSON some 20 times that in memory.
constexpr MeasuredFormat kFormat{"tandem convolution tuning", 2, "tuning file", "--autotune"};

struct Field {
  const char* name;
  std::int64_t ConvGeometry::* member;
};
constexpr std::array kFields{Field{"n", &ConvGeometry::n},
                             Field{"c", &ConvGeometry::c},
                             Field{"h", &ConvGeometry::h},
                             Field{"w", &ConvGeometry::w},
                             Field{"k", &ConvGeometry::k},
                             Field{"r", &ConvGeometry::r},
                             Field{"s", &ConvGeometry::s},
                             Field{"p", &ConvGeometry::p},
                             Field{"q", &ConvGeometry::q},
                             Field{"groups", &ConvGeometry::groups},
                             Field{"stride_h", &ConvGeometry::stride_h},
                             Field{"stride_w", &ConvGeometry::stride_w},
                             Field{"pad_h", &ConvGeometry::pad_h},
                             Field{"pad_w", &ConvGeometry::pad_w},
                             Field{"dilation_h", &ConvGeometry::dilation_h},
                             Field{"dilation_w", &ConvGeometry::dilation_w}};

struct Flag {
  const char* name;
  bool TunedWork::* member;
};
constexpr std::array kFlags{Flag{"bias", &TunedWork::bias}, Flag{"relu", &TunedWork::relu},
                            Flag{"mask", &TunedWork::mask}, Flag{"sums", &TunedWork::sums},
                            Flag{"gate", &TunedWork::gate}};

constexpr std::array kPasses{PassKind::forward,      PassKind::backward_input,  PassKind::backward_weight,
                             PassKind::forward_pool, PassKind::forward_moments, PassKind::forward_pool_moments};
constexpr std::array kDTypes{DType::f32, DType::f16, DType::bf16, DType::f64};
constexpr std::array kDevices{DeviceType::cpu, DeviceType::cuda};

std::string_view name_of_type(DeviceType type) { return type == DeviceType::cpu ? "cpu" : "cuda"; }

/// The value of that name; throws Error for others.
template <typename Values, typename Name>
auto named(const Values& values, Name&& name_of_value, const std::string& name, std::string_view what) {
  const auto found =
      std::find_if(values.begin(), values.end(), [&](auto value) { return name_of_value(value) == name; });
  require(found != values.end(), "unknown {} '{}'", what, name);
  return *found;
}

Json to_json(const TuningKey& key, const TuningResult& result) {
  Json geometry, times, work{{"unaligned", key.work.unaligned}};
  for (const Field& field : kFields) geometry[field.name] = key.geometry.*field.member;
  for (const Flag& flag : kFlags) work[flag.name] = key.work.*flag.member;
  for (const auto& [name, time] : result.microseconds) times[name] = time;
  return {{"device", name_of_type(key.device)},
          {"pass", name_of(key.pass)},
          {"dtype", name_of(key.dtype)},
          {"geometry", geometry},
          {"work", work},
          {"chosen", result.chosen},
          {"microseconds", times}};
}

std::pair<TuningKey, TuningResult> from_json(const Json& json) {
  TuningKey key{
      named(kDevices, name_of_type, json.at("device").get<std::string>(), "device"),
      named(
          kPasses, [](PassKind p) { return kernels::name_of(p); }, json.at("pass").get<std::string>(), "pass"),
      named(
          kDTypes, [](DType d) { return tandem::name_of(d); }, json.at("dtype").get<std::string>(), "dtype"),
      {}};
  for (const Field& field : kFields)
    key.geometry.*field.member = json.at("geometry").at(field.name).get<std::int64_t>();
  const Json& work = json.at("work");
  for (const Flag& flag : kFlags) key.work.*flag.member = work.at(flag.name).get<bool>();
  key.work.unaligned = work.at("unaligned").get<std::uint8_t>();
  TuningResult result{json.at("chosen").get<std::string>(), {}};
  for (const auto& [name, time] : json.at("microseconds").items()) result.microseconds[name] = time.get<double>();
  require(result.microseconds.contains(result.chosen), "'{}' was chosen without a time", result.chosen);
  return {key, result};
}

}  // namespace

std::string tuning_machine(Device device) {
  std::string text;
  for (const DeviceDescription& description : list_devices())
    if (description.device == device) text = description.name;
  if (device.type == DeviceType::cpu) text += fmt::format(", threads {}", num_threads());
  if (kernels::float32_products() == kernels::Float32Products::tf32) text += ", f32 as tf32";
  if (kernels::float32_products() == kernels::Float32Products::tf32x3) text += ", f32 as 3xtf32";
  if (device.type == DeviceType::cuda && !cuda_is_simulated())
    if (const auto& cudnn = kernels::find_cudnn().library) text += ", " + cudnn->version();
  for (const auto& [name, version] : build_versions()) text += fmt::format(", {} {}", name, version);
  return text;
}

std::string load_tuning(const std::string& path, const std::string& machine) {
  std::vector<std::pair<TuningKey, TuningResult>> results;
  std::string problem = read_measured_file(path, kFormat, [&](const Json& json) {
    const std::string theirs = json.at("machine").get<std::string>();
    require(theirs == machine, "measured on {}; this is {}", theirs, machine);
    for (const Json& pass : json.at("passes")) results.push_back(from_json(pass));
  });
  if (!problem.empty()) return problem.insert(path.size(), ": ignored");
  for (const auto& [key, result] : results) kernels::conv_tuner().add(key, result);
  return "";
}

bool can_hold_tuning(const std::string& path) { return can_hold_measured(path, kFormat); }

void save_tuning(const std::string& path, const std::string& machine) {
  Json passes = Json::array();
  for (const auto& [key, result] : kernels::conv_tuner().results()) passes.push_back(to_json(key, result));
  write_measured_file(path, kFormat, {{"machine", machine}, {"passes", passes}});
}

std::string tuning_table() {
  std::string text;
  for (const auto& [key, result] : kernels::conv_tuner().results()) {
    const ConvGeometry& g = key.geometry;
    text += fmt::format("  {:<15} {:<4} {}x{}x{}x{} * {}x{}x{}{}", name_of(key.pass), name_of(key.dtype), g.n, g.c, g.h,
                        g.w, g.k, g.r, g.s, g.has_unit_stride() ? "" : fmt::format("/{}", g.stride_h));
    for (const Flag& flag : kFlags)
      if (key.work.*flag.member) text += fmt::format(" {}", flag.name);
    if (key.work.unaligned != 0) text += " unaligned";
    std::vector<std::pair<double, std::string>> order;
    for (const auto& [name, time] : result.microseconds) order.emplace_back(time, name);
    std::sort(order.begin(), order.end());
    for (const auto& [time, name] : order) text += fmt::format("  {} {:.0f} us", name, time);
    text += '\n';
  }
  return text;
}

}  // namespace tandem::train

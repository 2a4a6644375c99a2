// Numbers of fields, as the .proto files have them.
#include "tandem/train/writers/tensorboard/hparams.h"

#include <cmath>

namespace tandem::train::detail {
namespace {

namespace plugin_data {
constexpr int kVersion = 1, kExperiment = 2, kSessionStart = 3, kSessionEnd = 4;
}
namespace experiment {
constexpr int kTimeCreated = 3, kSettings = 4, kMetrics = 5;
}
namespace setting {
constexpr int kName = 1, kType = 4;
}
namespace metric {
constexpr int kName = 1, kTag = 2;
}
namespace session_start {
constexpr int kSettings = 1, kTime = 5;
}
namespace session_end {
constexpr int kStatus = 1, kTime = 2, kSuccess = 1, kFailure = 2;
}
namespace map_entry {
constexpr int kKey = 1, kValue = 2;
}
namespace any_value {
constexpr int kNumber = 2, kString = 3, kBool = 4;
}

enum DataType : std::uint8_t { kString = 1, kBool = 2, kFloat64 = 3 };

DataType type_of(const ConfigValue& value) {
  if (std::holds_alternative<bool>(value)) return kBool;
  return std::holds_alternative<std::string>(value) ? kString : kFloat64;
}

/// google.protobuf.Value
WireMessage value_of(const ConfigValue& value) {
  WireMessage message;
  if (const auto* text = std::get_if<std::string>(&value)) return message.text(any_value::kString, *text);
  if (const auto* flag = std::get_if<bool>(&value)) return message.integer(any_value::kBool, *flag ? 1 : 0);
  const auto* integer = std::get_if<std::int64_t>(&value);
  const double number = integer != nullptr ? static_cast<double>(*integer) : std::get<double>(value);
  // The plugin makes JSON of it, which has no other numbers.
  if (!std::isfinite(number)) return message.text(any_value::kString, to_toml(value));
  return message.real64(any_value::kNumber, number);
}

WireMessage with_version(int field, const WireMessage& content) {
  WireMessage message;
  return message.integer(plugin_data::kVersion, 0).message(field, content);
}

}  // namespace

WireMessage experiment_info(double time, const Config& config, std::span<const std::string> metrics) {
  WireMessage content;
  content.real64(experiment::kTimeCreated, time);
  for (const auto& [name, value] : config) {
    WireMessage info;
    content.message(experiment::kSettings, info.text(setting::kName, name).integer(setting::kType, type_of(value)));
  }
  for (const std::string& tag : metrics) {
    WireMessage name, info;
    content.message(experiment::kMetrics, info.message(metric::kName, name.text(metric::kTag, tag)));
  }
  return with_version(plugin_data::kExperiment, content);
}

WireMessage session_start_info(double time, const Config& config) {
  WireMessage content;
  for (const auto& [name, value] : config) {
    WireMessage entry;
    entry.text(map_entry::kKey, name).message(map_entry::kValue, value_of(value));
    content.message(session_start::kSettings, entry);
  }
  content.real64(session_start::kTime, time);
  return with_version(plugin_data::kSessionStart, content);
}

WireMessage session_end_info(double time, bool success) {
  WireMessage content;
  content.integer(session_end::kStatus, success ? session_end::kSuccess : session_end::kFailure);
  content.real64(session_end::kTime, time);
  return with_version(plugin_data::kSessionEnd, content);
}

}  // namespace tandem::train::detail

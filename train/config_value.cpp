// Settings as TOML text.
#include "tandem/train/config_value.h"

#include <fmt/core.h>
#include <toml++/toml.h>

#include <nlohmann/json.hpp>

#include <sstream>

namespace tandem::train {
namespace {

std::string quoted(const std::string& text) {
  std::ostringstream out;
  out << toml::toml_formatter(toml::value<std::string>(text), toml::format_flags::allow_unicode_strings);
  return out.str();
}

// toml++ writes 17 digits where the standard library cannot find the shortest ones.
std::string shortest(double value) {
  std::string text = fmt::format("{}", value);
  // TOML tells floats from integers by the point or the exponent, and wants digits on both sides of a point.
  if (text.find_first_of(".en") == std::string::npos) text += ".0";
  return text;
}

}  // namespace

bool is_utf8(const std::string& text) {
  try {
    static_cast<void>(nlohmann::json(text).dump());
    return true;
  } catch (const nlohmann::json::type_error&) {
    return false;
  }
}

std::string to_toml(const ConfigValue& value) {
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return fmt::format("{}", *integer);
  if (const auto* real = std::get_if<double>(&value)) return shortest(*real);
  return quoted(std::get<std::string>(value));
}

std::string to_toml(const Config& config) {
  std::string text;
  for (const auto& [name, value] : config) text += fmt::format("{} = {}\n", name, to_toml(value));
  return text;
}

}  // namespace tandem::train

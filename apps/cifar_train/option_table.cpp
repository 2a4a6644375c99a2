// Reading option values, strictly: the whole text must be the value, and inside its limits.
#include "option_table.h"

#include "core/error.h"
#include "core/suggest.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

namespace tandem::apps {
namespace {

std::string dashed(std::string_view name) { return fmt::format("--{}", name); }

bool parse_flag(std::string_view name, const std::string& text) {
  if (text == "true") return true;
  if (text == "false") return false;
  fail("{} {}: give true or false", dashed(name), text);
}

template <typename T>
T parse_number(std::string_view name, const std::string& text, std::string_view kind) {
  T value{};
  const char* begin = text.data() + (text.starts_with('+') ? 1 : 0);
  const auto [end, error] = std::from_chars(begin, text.data() + text.size(), value);
  require(error != std::errc::result_out_of_range, "{} {}: too large", dashed(name), text);
  require(error == std::errc{} && end == text.data() + text.size(), "{} '{}': not {}", dashed(name), text, kind);
  return value;
}

std::int64_t parse_integer(std::string_view name, const std::string& text, const IntegerLimits& limits) {
  const auto value = parse_number<std::int64_t>(name, text, "a whole number");
  require(value >= limits.least, "{} {}: must be at least {}", dashed(name), text, limits.least);
  require(value <= limits.most, "{} {}: must be at most {}", dashed(name), text, limits.most);
  return value;
}

double parse_real(std::string_view name, const std::string& text, const RealLimits& limits) {
  const auto value = parse_number<double>(name, text, "a number");
  require(std::isfinite(value), "{} {}: must be finite", dashed(name), text);
  if (limits.above) require(value > limits.least, "{} {}: must be above {}", dashed(name), text, limits.least);
  require(value >= limits.least, "{} {}: must be at least {}", dashed(name), text, limits.least);
  if (limits.below) require(value < limits.most, "{} {}: must be below {}", dashed(name), text, limits.most);
  require(value <= limits.most, "{} {}: must be at most {}", dashed(name), text, limits.most);
  return value;
}

// get() for a plain field and for an optional one.
template <typename Field>
std::function<std::optional<train::ConfigValue>()> reader(const Field& field) {
  return [&field]() -> std::optional<train::ConfigValue> { return train::ConfigValue(field); };
}
template <typename Field>
std::function<std::optional<train::ConfigValue>()> reader(const std::optional<Field>& field) {
  return [&field]() -> std::optional<train::ConfigValue> {
    return field ? std::optional<train::ConfigValue>(*field) : std::nullopt;
  };
}

}  // namespace

std::string unknown_choice(std::string_view what, std::string_view name, const std::vector<std::string>& choices) {
  const std::string nearest = nearest_name(name, choices);
  const std::string hint = nearest.empty() ? "" : fmt::format(": did you mean {}?", nearest);
  return fmt::format("unknown {} '{}'{} (choices: {})", what, name, hint, fmt::join(choices, ", "));
}

void OptionTable::add(std::string name, std::string value_name, std::string help,
                      std::function<void(const std::string&)> set,
                      std::function<std::optional<train::ConfigValue>()> get) {
  options_.push_back({std::move(name), group_, std::move(value_name), std::move(help), std::move(set), std::move(get)});
}

void OptionTable::flag(std::string name, bool& field, std::string help) {
  add(
      name, "", std::move(help), [&field, name](const std::string& text) { field = parse_flag(name, text); },
      reader(field));
}

void OptionTable::flag(std::string name, std::optional<bool>& field, std::string help) {
  add(
      name, "", std::move(help), [&field, name](const std::string& text) { field = parse_flag(name, text); },
      reader(field));
}

void OptionTable::integer(std::string name, std::int64_t& field, IntegerLimits limits, std::string help) {
  add(
      name, "N", std::move(help),
      [&field, name, limits](const std::string& text) { field = parse_integer(name, text, limits); }, reader(field));
}

void OptionTable::integer(std::string name, std::optional<std::int64_t>& field, IntegerLimits limits,
                          std::string help) {
  add(
      name, "N", std::move(help),
      [&field, name, limits](const std::string& text) { field = parse_integer(name, text, limits); }, reader(field));
}

void OptionTable::real(std::string name, double& field, RealLimits limits, std::string value_name, std::string help) {
  add(
      name, std::move(value_name), std::move(help),
      [&field, name, limits](const std::string& text) { field = parse_real(name, text, limits); }, reader(field));
}

void OptionTable::real(std::string name, std::optional<double>& field, RealLimits limits, std::string value_name,
                       std::string help) {
  add(
      name, std::move(value_name), std::move(help),
      [&field, name, limits](const std::string& text) { field = parse_real(name, text, limits); }, reader(field));
}

void OptionTable::text(std::string name, std::string& field, std::string value_name, std::string help) {
  add(
      name, std::move(value_name), std::move(help), [&field](const std::string& value) { field = value; },
      reader(field));
}

void OptionTable::choice(std::string name, std::string& field, std::vector<std::string> choices, std::string help) {
  const std::string value_name = fmt::format("{}", fmt::join(choices, "|"));
  add(
      name, value_name, std::move(help),
      [&field, name, choices](const std::string& value) {
        require(std::find(choices.begin(), choices.end(), value) != choices.end(), "{}: {}", dashed(name),
                unknown_choice(name, value, choices));
        field = value;
      },
      reader(field));
}

void OptionTable::parsed(std::string name, std::optional<std::string>& field, std::string value_name,
                         std::function<std::string(const std::string&)> normalise, std::string help) {
  add(
      name, std::move(value_name), std::move(help),
      [&field, name, normalise](const std::string& value) {
        try {
          field = normalise(value);
        } catch (const Error& error) {
          fail("{} {}: {}", dashed(name), value, error.what());
        }
      },
      reader(field));
}

Option* OptionTable::find(std::string_view name) {
  const auto found = std::find_if(options_.begin(), options_.end(), [&](const Option& o) { return o.name == name; });
  return found == options_.end() ? nullptr : &*found;
}

std::vector<std::string> OptionTable::names() const {
  std::vector<std::string> names;
  for (const Option& option : options_) names.push_back(option.name);
  return names;
}

train::Config OptionTable::config() const {
  train::Config config;
  for (const Option& option : options_) {
    if (const auto value = option.get()) config.emplace_back(option.name, *value);
  }
  return config;
}

}  // namespace tandem::apps

// Reading option values, strictly: the whole text must be the value, and inside its limits.
#include "option_table.h"

#include "apps/arguments/arguments.h"
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

/// An option that is bound to a field, all but `set`.
template <typename Field>
Option bound(std::string name, std::string value_name, std::string help, Field& field) {
  Option option;
  option.name = std::move(name);
  option.value_name = std::move(value_name);
  option.help = std::move(help);
  option.get = [&field]() -> std::optional<train::ConfigValue> {
    if constexpr (requires { field.has_value(); }) {
      return field ? std::optional<train::ConfigValue>(*field) : std::nullopt;
    } else {
      return train::ConfigValue(field);
    }
  };
  option.reset = [&field, initial = field] { field = initial; };
  return option;
}

/// A value as the command line takes it.
std::string text_of(const train::ConfigValue& value) {
  const auto* const text = std::get_if<std::string>(&value);
  return text != nullptr ? *text : train::to_toml(value);
}

/// "--momentum 0.5", "--no-master-weights"
std::string written(const Option& option) {
  const std::string value = text_of(*option.get());
  if (option.is_flag()) return fmt::format("--{}{}", value == "true" ? "" : "no-", option.name);
  return fmt::format("--{} {}", option.name, value);
}

bool contains(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

}  // namespace

std::string unknown_choice(std::string_view what, std::string_view name, const std::vector<std::string>& choices) {
  const std::string nearest = nearest_name(name, choices);
  const std::string hint = nearest.empty() ? "" : fmt::format(": did you mean {}?", nearest);
  return fmt::format("unknown {} '{}'{} (choices: {})", what, name, hint, fmt::join(choices, ", "));
}

Option& Option::only_for(std::string name_of_chooser, std::vector<std::string> choices,
                         std::vector<std::string> idle_values) {
  chooser = std::move(name_of_chooser);
  users = std::move(choices);
  idle = std::move(idle_values);
  return *this;
}

Option& OptionTable::add(Option option) {
  option.group = group_;
  option.initial = option.get();
  return options_.emplace_back(std::move(option));
}

template <typename Field>
Option& OptionTable::add_flag(std::string name, Field& field, std::string help) {
  Option option = bound(name, "", std::move(help), field);
  option.set = [&field, name](const std::string& text) { field = parse_flag(name, text); };
  return add(std::move(option));
}

Option& OptionTable::flag(std::string name, bool& field, std::string help) {
  return add_flag(std::move(name), field, std::move(help));
}

Option& OptionTable::flag(std::string name, std::optional<bool>& field, std::string help) {
  return add_flag(std::move(name), field, std::move(help));
}

template <typename Field>
Option& OptionTable::add_integer(std::string name, Field& field, IntegerLimits limits, std::string help) {
  Option option = bound(name, "N", std::move(help), field);
  option.set = [&field, name, limits](const std::string& text) { field = parse_integer(name, text, limits); };
  return add(std::move(option));
}

Option& OptionTable::integer(std::string name, std::int64_t& field, IntegerLimits limits, std::string help) {
  return add_integer(std::move(name), field, limits, std::move(help));
}

Option& OptionTable::integer(std::string name, std::optional<std::int64_t>& field, IntegerLimits limits,
                             std::string help) {
  return add_integer(std::move(name), field, limits, std::move(help));
}

template <typename Field>
Option& OptionTable::add_real(std::string name, Field& field, RealLimits limits, std::string value_name,
                              std::string help) {
  Option option = bound(name, std::move(value_name), std::move(help), field);
  option.set = [&field, name, limits](const std::string& text) { field = parse_real(name, text, limits); };
  return add(std::move(option));
}

Option& OptionTable::real(std::string name, double& field, RealLimits limits, std::string value_name,
                          std::string help) {
  return add_real(std::move(name), field, limits, std::move(value_name), std::move(help));
}

Option& OptionTable::real(std::string name, std::optional<double>& field, RealLimits limits, std::string value_name,
                          std::string help) {
  return add_real(std::move(name), field, limits, std::move(value_name), std::move(help));
}

Option& OptionTable::path(std::string name, std::string& field, std::string value_name, std::string help) {
  Option option = bound(name, std::move(value_name), std::move(help), field);
  option.get = [&field]() -> std::optional<train::ConfigValue> {
    return field.empty() ? std::nullopt : std::optional<train::ConfigValue>(field);
  };
  option.set = [&field, name](const std::string& value) {
    require_path(dashed(name), value);
    field = value;
  };
  return add(std::move(option));
}

Option& OptionTable::choice(std::string name, std::string& field, std::vector<std::string> choices, std::string help) {
  Option option = bound(name, fmt::format("{}", fmt::join(choices, "|")), std::move(help), field);
  option.set = [&field, name, choices](const std::string& value) {
    require(contains(choices, value), "{}: {}", dashed(name), unknown_choice(name, value, choices));
    field = value;
  };
  return add(std::move(option));
}

Option& OptionTable::parsed(std::string name, std::optional<std::string>& field, std::string value_name,
                            std::function<std::string(const std::string&)> normalise, std::string help) {
  Option option = bound(name, std::move(value_name), std::move(help), field);
  option.set = [&field, name, normalise](const std::string& value) {
    try {
      field = normalise(value);
    } catch (const Error& error) {
      fail("{} {}: {}", dashed(name), value, error.what());
    }
  };
  return add(std::move(option));
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

std::vector<std::string> OptionTable::settle_choosers() {
  std::vector<std::string> notes;
  for (Option& option : options_) {
    if (option.chooser.empty() || !option.given() || option.get() == option.initial) continue;
    const std::string value = text_of(*option.get());
    const Option& chooser = *find(option.chooser);
    if (contains(option.idle, value) || contains(option.users, text_of(*chooser.get()))) continue;
    const bool overridden = option.source == Source::config_file && chooser.source == Source::command_line;
    require(overridden, "{}{}: of no use with {}, only with {}; leave it out",
            option.place.empty() ? "" : option.place + ": ", written(option), written(chooser),
            fmt::join(option.users, ", "));
    notes.push_back(fmt::format("{}: {} = {} is left out: {} has no use for it", option.place, option.name, value,
                                written(chooser)));
    option.reset();
    option.source = Source::program;
  }
  return notes;
}

}  // namespace tandem::apps

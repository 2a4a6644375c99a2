// Reading option values, strictly: the whole text must be the value, and inside its limits.
#include "option_table.h"

#include "apps/arguments/arguments.h"
#include "tandem/core/error.h"
#include "tandem/core/suggest.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <type_traits>

namespace tandem::apps {
namespace {

std::string dashed(std::string_view name) { return fmt::format("--{}", name); }

template <typename T>
T read_number(std::string_view name, const std::string& text, std::string_view kind) {
  T value{};
  const char* begin = text.data() + (text.starts_with('+') ? 1 : 0);
  const auto [end, error] = std::from_chars(begin, text.data() + text.size(), value);
  require(error != std::errc::result_out_of_range, "{} {}: too large or too small for {}", dashed(name), text, kind);
  require(error == std::errc{} && end == text.data() + text.size(), "{} '{}': not {} such as {}", dashed(name), text,
          kind, std::is_integral_v<T> ? "12" : "0.5 or 1e-3");
  return value;
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
  if (!option.without.empty() && value == option.without) return fmt::format("--no-{}", option.name);
  return fmt::format("--{} {}", option.name, value);
}

/// ", only with sgd, rmsprop", ", only with --steps 0"; or nothing, where all others have a use for it.
std::string users_of(const Use& use) {
  if (use.users_are_all_others) return "";
  if (use.users.size() == 1) return fmt::format(", only with --{} {}", use.chooser, use.users.front());
  return fmt::format(", only with {}", fmt::join(use.users, ", "));
}

bool contains(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

}  // namespace

Option& Option::only_for(std::string name_of_chooser, std::vector<std::string> choices,
                         std::vector<std::string> idle_values) {
  uses.push_back({.chooser = std::move(name_of_chooser), .users = std::move(choices), .idle = std::move(idle_values)});
  return *this;
}

Option& Option::useless_with(std::string name_of_chooser, std::vector<std::string> choices,
                             std::vector<std::string> idle_values) {
  only_for(std::move(name_of_chooser), std::move(choices), std::move(idle_values));
  uses.back().users_are_all_others = true;
  return *this;
}

Option& Option::useless_without(std::vector<std::string> names) {
  needs = std::move(names);
  return *this;
}

Option& Option::own_to_a_rank() {
  differs_by_rank = true;
  return *this;
}

Option& Option::may_be_repeated() {
  repeats = true;
  return *this;
}

Option& Option::off_by_no(std::string value) {
  without = std::move(value);
  return *this;
}

Option& Option::affects_result_if(std::function<bool()> condition) {
  condition_of_effect = std::move(condition);
  return *this;
}

Option& Option::no_effect_on_result() {
  return affects_result_if([] { return false; });
}

Option& Option::also_called(std::string_view former, std::string_view value) {
  set = [inner = set, former = std::string(former), value = std::string(value)](const std::string& text) {
    inner(text == former ? value : text);
  };
  return *this;
}

bool OptionTable::read_flag(std::string_view option, const std::string& text) {
  require(text == "true" || text == "false", "--{} {}: give true or false", option, text);
  return text == "true";
}

std::int64_t OptionTable::read_integer(std::string_view option, const std::string& text, const IntegerLimits& limits) {
  const auto value = read_number<std::int64_t>(option, text, "a whole number");
  require(value >= limits.least, "--{} {}: must be at least {}", option, text, limits.least);
  require(value <= limits.most, "--{} {}: must be at most {}", option, text, limits.most);
  return value;
}

double OptionTable::read_real(std::string_view option, const std::string& text, const RealLimits& limits) {
  const auto value = read_number<double>(option, text, "a number");
  require(std::isfinite(value), "--{} {}: must be finite", option, text);
  if (limits.above) require(value > limits.least, "--{} {}: must be above {}", option, text, limits.least);
  require(value >= limits.least, "--{} {}: must be at least {}", option, text, limits.least);
  if (limits.below) require(value < limits.most, "--{} {}: must be below {}", option, text, limits.most);
  require(value <= limits.most, "--{} {}: must be at most {}", option, text, limits.most);
  return value;
}

std::string OptionTable::read_path(std::string_view option, const std::string& text) {
  require_path(dashed(option), text);
  require(train::is_utf8(text),
          "--{} {:?}: is no UTF-8 text, which config.toml and the report are written in: name a link to it", option,
          text);
  return text;
}

std::string OptionTable::read_choice(std::string_view option, const std::string& text,
                                     const std::vector<std::string>& choices) {
  require(contains(choices, text), "--{}: {}", option, unknown_name(option, text, choices));
  return text;
}

std::string OptionTable::value_name_of(const std::vector<std::string>& choices) {
  return fmt::format("{}", fmt::join(choices, "|"));
}

Option& OptionTable::number(std::string name, double& field, RealLimits limits, std::string value_name,
                            std::string help) {
  Option& option = real(std::move(name), field, limits, std::move(value_name), std::move(help));
  option.get = [&field]() -> std::optional<train::ConfigValue> {
    if (field != std::floor(field) || std::abs(field) > 0x1p53) return field;
    return static_cast<std::int64_t>(field);
  };
  option.initial = option.get();
  return option;
}

Option& OptionTable::add(Option option) {
  option.group = group_;
  option.initial = option.get();
  return options_.emplace_back(std::move(option));
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

std::vector<std::string> OptionTable::names_without_effect() const {
  std::vector<std::string> names;
  for (const Option& option : options_) {
    if (!option.affects_result()) names.push_back(option.name);
  }
  return names;
}

std::vector<std::string> OptionTable::settle_choosers() {
  std::vector<std::string> notes;
  const auto take_back = [&notes](Option& option, const Option& other) {
    notes.push_back(fmt::format("{}: {} = {} is left out: {} has no use for it", option.place, option.name,
                                text_of(*option.get()), written(other)));
    option.reset();
    option.source = Source::program;
  };
  for (Option& option : options_) {
    if (!option.given() || option.get() == option.initial) continue;
    const Option* set_aside = nullptr;
    bool has_use = option.needs.empty();
    for (const std::string& name : option.needs) {
      const Option& other = *find(name);
      has_use = has_use || other.get() != other.initial;
      if (other.source > option.source) set_aside = &other;
    }
    if (!has_use && set_aside != nullptr) {
      take_back(option, *set_aside);
      continue;
    }
    const std::string value = text_of(*option.get());
    for (const Use& use : option.uses) {
      const Option& chooser = *find(use.chooser);
      const auto choice = chooser.get();  // nothing: an empty path
      const bool is_named = contains(use.users, choice ? text_of(*choice) : "");
      const bool is_used = is_named != use.users_are_all_others;
      if (is_used || contains(use.idle, value)) continue;
      const bool overridden = option.source < chooser.source;
      require(overridden, "{}{}: of no use with {}{}; leave it out", option.place.empty() ? "" : option.place + ": ",
              written(option), written(chooser), users_of(use));
      take_back(option, chooser);
      break;
    }
  }
  return notes;
}

}  // namespace tandem::apps

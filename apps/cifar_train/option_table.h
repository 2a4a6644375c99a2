// The options of a program, described once: command line, config file, help text and run log all come from this table.
#pragma once

#include "tandem/core/error.h"
#include "tandem/train/config_value.h"

#include <concepts>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace tandem::apps {

/// Bounds of a real number; `above` and `below` exclude the bound itself.
struct RealLimits {
  double least = -std::numeric_limits<double>::infinity();
  double most = std::numeric_limits<double>::infinity();
  bool above = false;
  bool below = false;
};

struct IntegerLimits {
  std::int64_t least = 0;
  std::int64_t most = std::numeric_limits<std::int32_t>::max();
};

/// Who chose a value: of two, the later one goes before the other.
enum class Source : std::uint8_t { program, recipe, config_file, command_line };

/// Only these values of another option, the chooser, have a use for one; or all but these.
struct Use {
  std::string chooser;
  std::vector<std::string> users;
  bool users_are_all_others = false;
  /// Values that say nothing, so that they may stand beside any value of the chooser. So may the initial value.
  std::vector<std::string> idle = {};
};

/// One option. `set` reads its text into the program's settings and throws Error with what is wrong with it; `get` is
/// the value now, or nothing where the program chooses it later; `reset` takes a value back.
struct Option {
  std::string name;  ///< without the dashes
  std::string group;
  std::string value_name;  ///< what the help text calls the value; empty for a flag
  std::string help;
  std::function<void(const std::string&)> set;
  std::function<std::optional<train::ConfigValue>()> get;
  std::function<void()> reset;
  std::optional<train::ConfigValue> initial;  ///< what get() gave before anything was set
  Source source = Source::program;
  std::string place;             ///< where a recipe or a config file sets it, "run.toml:3"
  bool differs_by_rank = false;  ///< ranks may have values of their own
  bool repeats = false;          ///< values given one after another are joined by "; "
  std::string without;           ///< the value that --no-NAME stands for; empty: there is no such switch

  /// Which other options must have a use for it.
  std::vector<Use> uses;
  /// It says something only where one of these has another value than its initial one; empty: it always does.
  std::vector<std::string> needs;
  /// Whether another value gives another result, as things are set now; null: it does. See affects_result().
  std::function<bool()> condition_of_effect;

  bool is_flag() const { return value_name.empty(); }
  bool given() const { return source != Source::program; }
  /// Whether runs that differ in this option may learn something else. What only decides where files are, what is
  /// written or shown, or how fast it goes does not: comparisons pass over it, and a run may go on with another value.
  bool affects_result() const { return !condition_of_effect || condition_of_effect(); }
  Option& only_for(std::string name, std::vector<std::string> choices, std::vector<std::string> idle_values = {});
  /// The reverse: of no use with these values of the other option.
  Option& useless_with(std::string name, std::vector<std::string> choices, std::vector<std::string> idle_values = {});
  /// The same where all these other options are as they are initially.
  Option& useless_without(std::vector<std::string> names);
  Option& own_to_a_rank();
  Option& may_be_repeated();
  Option& off_by_no(std::string value);
  Option& affects_result_if(std::function<bool()> condition);
  Option& no_effect_on_result();
  /// Takes `former`, which a value was called before, for `value`; help and errors do not tell it.
  Option& also_called(std::string_view former, std::string_view value);
};

/// Options are bound to fields of the structs that use them. A field holds the default until the option is set; an
/// empty std::optional stands for a default that depends on other options and is told in the help text. What adds an
/// option returns it, until the next one is added.
class OptionTable {
 public:
  /// Options added from now on stand under this title.
  void group(std::string title) { group_ = std::move(title); }

  /// bool
  template <typename Field>
  Option& flag(std::string name, Field& field, std::string help) {
    return bind(std::move(name), "", std::move(help), field, read_flag);
  }
  /// Any integer type.
  template <typename Field>
  Option& integer(std::string name, Field& field, IntegerLimits limits, std::string help) {
    return bind(
        std::move(name), "N", std::move(help), field,
        [limits](std::string_view option, const std::string& text) { return read_integer(option, text, limits); });
  }
  /// double
  template <typename Field>
  Option& real(std::string name, Field& field, RealLimits limits, std::string value_name, std::string help) {
    return bind(std::move(name), std::move(value_name), std::move(help), field,
                [limits](std::string_view option, const std::string& text) { return read_real(option, text, limits); });
  }
  /// double that is mostly a whole number, which configurations then have without a point.
  Option& number(std::string name, double& field, RealLimits limits, std::string value_name, std::string help);
  /// std::string or std::filesystem::path, of a file or folder. An empty one is refused; "" in the field is none, and
  /// no value of the option.
  template <typename Field>
  Option& path(std::string name, Field& field, std::string value_name, std::string help) {
    return bind(std::move(name), std::move(value_name), std::move(help), field, read_path);
  }
  /// One of `choices`, which `parse` makes a field of; a near miss is answered with the nearest.
  template <typename Field, typename Parse = std::identity>
  Option& choice(std::string name, Field& field, const std::vector<std::string>& choices, std::string help,
                 Parse parse = {}) {
    return bind(std::move(name), value_name_of(choices), std::move(help), field,
                [choices, parse](std::string_view option, const std::string& text) {
                  return parse(read_choice(option, text, choices));
                });
  }
  /// Text that `parse` makes a field of, or throws Error on.
  template <typename Field, typename Parse>
  Option& parsed(std::string name, Field& field, std::string value_name, Parse parse, std::string help) {
    return bind(std::move(name), std::move(value_name), std::move(help), field,
                [parse](std::string_view option, const std::string& text) {
                  return explained(option, text, [&] { return parse(text); });
                });
  }

  std::vector<Option>& options() { return options_; }
  const std::vector<Option>& options() const { return options_; }

  /// Null if there is none of that name.
  Option* find(std::string_view name);
  std::vector<std::string> names() const;

  /// Every option that has a value now.
  train::Config config() const;

  /// The names of those that do not affect the result.
  std::vector<std::string> names_without_effect() const;

  /// Throws Error where an option is given that the value of its chooser has no use for. But where a recipe or a config
  /// file gives it, and one that goes before that, the command line or a config file beside the recipe, another value
  /// of the chooser than it was written for, the option is taken back; returns a line about each of these. So is one
  /// that is useless without others, where these were set aside like that; whether they are there is otherwise not
  /// looked at.
  std::vector<std::string> settle_choosers();

 private:
  // Strictly: the whole text must be the value, and inside its limits. Errors name the option.
  static bool read_flag(std::string_view option, const std::string& text);
  static std::int64_t read_integer(std::string_view option, const std::string& text, const IntegerLimits& limits);
  static double read_real(std::string_view option, const std::string& text, const RealLimits& limits);
  static std::string read_path(std::string_view option, const std::string& text);
  static std::string read_choice(std::string_view option, const std::string& text,
                                 const std::vector<std::string>& choices);
  static std::string value_name_of(const std::vector<std::string>& choices);
  /// Puts "--option text: " in front of what `body` throws.
  template <typename Body>
  static auto explained(std::string_view option, const std::string& text, const Body& body) {
    try {
      return body();
    } catch (const Error& error) {
      fail("--{}{}{}: {}", option, text.empty() ? "" : " ", text, error.what());
    }
  }

  /// A field's value as configurations have it; nothing for empty ones. Types of the libraries have a name_of or a
  /// to_string.
  template <typename Field>
  static std::optional<train::ConfigValue> value_of(const Field& field) {
    if constexpr (std::is_same_v<Field, bool> || std::is_same_v<Field, double>) {
      return field;
    } else if constexpr (std::integral<Field>) {
      return static_cast<std::int64_t>(field);
    } else if constexpr (requires { field.has_value(); }) {
      return field ? value_of(*field) : std::nullopt;
    } else if constexpr (std::convertible_to<Field, std::string>) {
      const std::string& text = field;
      return text.empty() ? std::nullopt : std::optional<train::ConfigValue>(text);
    } else if constexpr (requires { name_of(field); }) {
      return std::string(name_of(field));
    } else {
      return to_string(field);
    }
  }

  /// `read(name, text)` gives the field's new value.
  template <typename Field, typename Read>
  Option& bind(std::string name, std::string value_name, std::string help, Field& field, const Read& read) {
    Option option;
    option.set = [&field, read, name](const std::string& text) { field = static_cast<Field>(read(name, text)); };
    option.get = [&field] { return value_of(field); };
    option.reset = [&field, initial = field] { field = initial; };
    option.name = std::move(name);
    option.value_name = std::move(value_name);
    option.help = std::move(help);
    return add(std::move(option));
  }
  Option& add(Option option);

  std::string group_;
  std::vector<Option> options_;
};

}  // namespace tandem::apps

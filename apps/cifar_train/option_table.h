// The options of a program, described once: command line, config file, help text and run log all come from this table.
#pragma once

#include "train/config_value.h"

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
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

/// Who chose a value.
enum class Source : std::uint8_t { program, config_file, command_line };

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
  std::string place;  ///< where a config file sets it, "run.toml:3"

  /// Only these values of another option, the chooser, have a use for this one.
  std::string chooser;
  std::vector<std::string> users;
  /// Values that say nothing, so that they may stand beside any value of the chooser. So may the initial value.
  std::vector<std::string> idle;

  bool is_flag() const { return value_name.empty(); }
  bool given() const { return source != Source::program; }
  Option& only_for(std::string name, std::vector<std::string> choices, std::vector<std::string> idle_values = {});
};

/// Fields are bound by reference and hold the default until set; an empty optional stands for a default that depends on
/// other options and is told in the help text. What adds an option returns it, until the next one is added.
class OptionTable {
 public:
  /// Options added from now on stand under this title.
  void group(std::string title) { group_ = std::move(title); }

  Option& flag(std::string name, bool& field, std::string help);
  Option& flag(std::string name, std::optional<bool>& field, std::string help);
  Option& integer(std::string name, std::int64_t& field, IntegerLimits limits, std::string help);
  Option& integer(std::string name, std::optional<std::int64_t>& field, IntegerLimits limits, std::string help);
  Option& real(std::string name, double& field, RealLimits limits, std::string value_name, std::string help);
  Option& real(std::string name, std::optional<double>& field, RealLimits limits, std::string value_name,
               std::string help);
  /// Of a file or folder. An empty one is refused; "" in the field is none, and no value of the option.
  Option& path(std::string name, std::string& field, std::string value_name, std::string help);
  /// One of `choices`; a near miss is answered with the nearest.
  Option& choice(std::string name, std::string& field, std::vector<std::string> choices, std::string help);
  /// Text that `normalise` reads, throws Error on, or rewrites.
  Option& parsed(std::string name, std::optional<std::string>& field, std::string value_name,
                 std::function<std::string(const std::string&)> normalise, std::string help);

  std::vector<Option>& options() { return options_; }
  const std::vector<Option>& options() const { return options_; }

  /// Null if there is none of that name.
  Option* find(std::string_view name);
  std::vector<std::string> names() const;

  /// Every option that has a value now.
  train::Config config() const;

  /// Throws Error where an option is given that the value of its chooser has no use for. But where a config file gives
  /// it and the command line another value of the chooser than the file was written for, the option is taken back;
  /// returns a line about each of these.
  std::vector<std::string> settle_choosers();

 private:
  Option& add(Option option);
  template <typename Field>
  Option& add_flag(std::string name, Field& field, std::string help);
  template <typename Field>
  Option& add_integer(std::string name, Field& field, IntegerLimits limits, std::string help);
  template <typename Field>
  Option& add_real(std::string name, Field& field, RealLimits limits, std::string value_name, std::string help);

  std::string group_;
  std::vector<Option> options_;
};

/// "unknown model 'vgg_lit': did you mean vgg_lite? (choices: a, b, c)", without the question where no choice is near.
std::string unknown_choice(std::string_view what, std::string_view name, const std::vector<std::string>& choices);

}  // namespace tandem::apps

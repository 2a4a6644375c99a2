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

/// One option. `set` reads its text into the program's settings and throws Error with what is wrong with it; `get` is
/// the value now, or nothing where the program chooses it later.
struct Option {
  std::string name;  ///< without the dashes
  std::string group;
  std::string value_name;  ///< what the help text calls the value; empty for a flag
  std::string help;
  std::function<void(const std::string&)> set;
  std::function<std::optional<train::ConfigValue>()> get;
  bool given = false;  ///< set by the user

  bool is_flag() const { return value_name.empty(); }
};

/// Fields are bound by reference and hold the default until set; an empty optional stands for a default that depends on
/// other options and is told in the help text.
class OptionTable {
 public:
  /// Options added from now on stand under this title.
  void group(std::string title) { group_ = std::move(title); }

  void flag(std::string name, bool& field, std::string help);
  void flag(std::string name, std::optional<bool>& field, std::string help);
  void integer(std::string name, std::int64_t& field, IntegerLimits limits, std::string help);
  void integer(std::string name, std::optional<std::int64_t>& field, IntegerLimits limits, std::string help);
  void real(std::string name, double& field, RealLimits limits, std::string value_name, std::string help);
  void real(std::string name, std::optional<double>& field, RealLimits limits, std::string value_name,
            std::string help);
  void text(std::string name, std::string& field, std::string value_name, std::string help);
  /// One of `choices`; a near miss is answered with the nearest.
  void choice(std::string name, std::string& field, std::vector<std::string> choices, std::string help);
  /// Text that `normalise` reads, throws Error on, or rewrites.
  void parsed(std::string name, std::optional<std::string>& field, std::string value_name,
              std::function<std::string(const std::string&)> normalise, std::string help);

  std::vector<Option>& options() { return options_; }
  const std::vector<Option>& options() const { return options_; }

  /// Null if there is none of that name.
  Option* find(std::string_view name);
  std::vector<std::string> names() const;

  /// Every option that has a value now.
  train::Config config() const;

 private:
  void add(std::string name, std::string value_name, std::string help, std::function<void(const std::string&)> set,
           std::function<std::optional<train::ConfigValue>()> get);

  std::string group_;
  std::vector<Option> options_;
};

/// "unknown model 'vgg_lit': did you mean vgg_lite? (choices: a, b, c)", without the question where no choice is near.
std::string unknown_choice(std::string_view what, std::string_view name, const std::vector<std::string>& choices);

}  // namespace tandem::apps

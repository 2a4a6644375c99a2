// Settings of a run as data: what config files, logs and the comparison between ranks are made of.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace tandem::train {

using ConfigValue = std::variant<bool, std::int64_t, double, std::string>;

/// Names and values, in the order they are listed to the user.
using Config = std::vector<std::pair<std::string, ConfigValue>>;

/// As TOML writes it: true, 12, 0.05, "text". Doubles in the fewest digits that read back to the same number.
std::string to_toml(const ConfigValue& value);

/// One `name = value` line each.
/// Example:
///     const Config config{{"lr", 0.05}, {"nesterov", true}, {"optimizer", "sgd"}};
///     const std::string text = to_toml(config);  // three lines: lr = 0.05, nesterov = true, optimizer = "sgd"
std::string to_toml(const Config& config);

}  // namespace tandem::train

// Settings of a run as data: what config files, logs and the comparison between ranks are made of.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace tandem::train {

/// The value of a setting, as TOML has it.
using ConfigValue = std::variant<bool, std::int64_t, double, std::string>;

/// Names and values, in the order they are listed to the user.
using Config = std::vector<std::pair<std::string, ConfigValue>>;

/// Whether a file of settings can hold this text: TOML is in UTF-8.
bool is_utf8(const std::string& text);

/// As TOML writes it: true, 12, 0.05, "text". Doubles in the fewest digits that read back to the same number.
/// Text must be UTF-8.
std::string to_toml(const ConfigValue& value);

/// One `name = value` line each.
/// Example:
///     const Config config{{"lr", 0.05}, {"nesterov", true}, {"optimizer", "sgd"}};
///     const std::string text = to_toml(config);  // three lines: lr = 0.05, nesterov = true, optimizer = "sgd"
std::string to_toml(const Config& config);

}  // namespace tandem::train

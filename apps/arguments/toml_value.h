// A value of a TOML file as an option takes it.
#pragma once

#include <fmt/core.h>
#include <toml++/toml.h>

#include <optional>
#include <string>

namespace tandem::apps {

/// A value as the command line would give it; nothing for what no option is (tables, lists, dates).
inline std::optional<std::string> toml_value_text(const toml::node& node) {
  if (const auto* const text = node.as_string()) return text->get();
  if (const auto* const flag = node.as_boolean()) return flag->get() ? "true" : "false";
  if (const auto* const integer = node.as_integer()) return fmt::format("{}", integer->get());
  if (const auto* const real = node.as_floating_point()) return fmt::format("{}", real->get());
  return std::nullopt;
}

}  // namespace tandem::apps

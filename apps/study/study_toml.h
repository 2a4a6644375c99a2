// Typed values of a study's file: what is of another type is an error with its line.
#pragma once

#include "tandem/core/error.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tandem::study {

inline int line_of(const toml::node& node) { return static_cast<int>(node.source().begin.line); }

/// Keys and values in the order of their lines: a TOML table is sorted by name.
std::vector<std::pair<const toml::key*, const toml::node*>> in_order(const toml::table& table);

/// Nothing, or an empty list, stands for a key that is not there.
class StudyToml {
 public:
  explicit StudyToml(std::string file) : file_(std::move(file)) {}

  const std::string& file() const { return file_; }

  /// Throws Error: "batch.toml:7: ...".
  template <typename... Arguments>
  [[noreturn]] void fail_at(int line, fmt::format_string<Arguments...> format, Arguments&&... arguments) const {
    fail("{}:{}: {}", file_, line, fmt::format(format, std::forward<Arguments>(arguments)...));
  }

  std::optional<std::string> text(const toml::table& table, std::string_view key) const;
  /// Of a text or a list of texts, each with its line.
  std::vector<std::pair<std::string, int>> texts(const toml::table& table, std::string_view key) const;
  const toml::table* table_in(const toml::table& root, std::string_view key) const;
  /// Of an option, as the command line would give it.
  std::string value(const std::string& name, const toml::node& node) const;

 private:
  std::string file_;
};

}  // namespace tandem::study

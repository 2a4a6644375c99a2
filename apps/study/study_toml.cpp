// Asking toml++, and saying what to write.
#include "apps/study/study_toml.h"

#include "apps/arguments/toml_value.h"

#include <algorithm>

namespace tandem::study {

std::vector<std::pair<const toml::key*, const toml::node*>> in_order(const toml::table& table) {
  std::vector<std::pair<const toml::key*, const toml::node*>> entries;
  for (const auto& [key, node] : table) entries.emplace_back(&key, &node);
  std::ranges::stable_sort(entries, [](const auto& a, const auto& b) {
    const auto &first = a.first->source().begin, &second = b.first->source().begin;
    return std::pair(first.line, first.column) < std::pair(second.line, second.column);
  });
  return entries;
}

std::optional<std::string> StudyToml::text(const toml::table& table, std::string_view key) const {
  const toml::node* const node = table.get(key);
  if (node == nullptr) return std::nullopt;
  const auto* const value = node->as_string();
  if (value == nullptr) fail_at(line_of(*node), "{}: is no text; write {} = \"...\"", key, key);
  return value->get();
}

std::vector<std::pair<std::string, int>> StudyToml::texts(const toml::table& table, std::string_view key) const {
  const toml::node* const node = table.get(key);
  if (node == nullptr) return {};
  if (const auto* const one = node->as_string()) return {{one->get(), line_of(*node)}};
  const auto* const list = node->as_array();
  if (list == nullptr || !list->is_homogeneous<std::string>())
    fail_at(line_of(*node), "{}: is no list of texts; write {} = [\"...\", \"...\"]", key, key);
  std::vector<std::pair<std::string, int>> all;
  for (const toml::node& entry : *list) all.emplace_back(entry.as_string()->get(), line_of(entry));
  return all;
}

const toml::table* StudyToml::table_in(const toml::table& root, std::string_view key) const {
  const toml::node* const node = root.get(key);
  if (node == nullptr) return nullptr;
  if (node->as_table() == nullptr)
    fail_at(line_of(*node), "{}: is no section; write [{}] on a line of its own, and options below it", key, key);
  return node->as_table();
}

std::string StudyToml::value(const std::string& name, const toml::node& node) const {
  const auto text = apps::toml_value_text(node);
  if (!text) fail_at(line_of(node), "{}: is no number, text, true or false; write one value", name);
  return *text;
}

}  // namespace tandem::study

// Fields of JSON that may come from anywhere: what is missing or of another kind is as if it were not there.
#pragma once

#include "tandem/train/parse_json.h"
#include "tandem/train/report/run_data.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

namespace tandem::train::report {

using Json = nlohmann::ordered_json;

inline const Json* find_field(const Json& json, const char* name) {
  if (!json.is_object()) return nullptr;
  const auto found = json.find(name);
  return found == json.end() ? nullptr : &*found;
}

inline double number_field(const Json& json, const char* name) {
  const Json* const field = find_field(json, name);
  return field != nullptr && field->is_number() ? field->get<double>() : kMissing;
}

inline std::string text_field(const Json& json, const char* name) {
  const Json* const field = find_field(json, name);
  return field != nullptr && field->is_string() ? field->get<std::string>() : std::string();
}

/// A whole number from 0 to 2^53, or -1.
inline std::int64_t whole_field(const Json& json, const char* name) {
  const double value = number_field(json, name);
  return value >= 0.0 && value <= 0x1p53 && value == std::floor(value) ? static_cast<std::int64_t>(value) : -1;
}

inline NumberTable number_table(const Json& json, const char* name) {
  NumberTable table;
  const Json* const field = find_field(json, name);
  if (field == nullptr || !field->is_object()) return table;
  for (const auto& item : field->items()) {
    if (item.value().is_number()) table.emplace_back(item.key(), item.value().get<double>());
  }
  return table;
}

inline std::vector<std::string> text_list(const Json& json, const char* name) {
  std::vector<std::string> list;
  const Json* const field = find_field(json, name);
  if (field == nullptr || !field->is_array()) return list;
  for (const Json& item : *field) {
    if (item.is_string()) list.push_back(item.get<std::string>());
  }
  return list;
}

/// A value for people: text without quotes.
inline std::string text_of(const Json& json) {
  return json.is_string() ? json.get<std::string>() : json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// Whole file, of at most `most` bytes. Throws Error that names the file.
std::string read_text(const std::string& path, std::int64_t most);

/// Throws Error that names file and line.
Json read_json(const std::string& path, std::int64_t most);

}  // namespace tandem::train::report

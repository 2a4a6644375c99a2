// Words for what environment_file.cpp writes; anything else is told as it is.
#include "tandem/train/report/environment_table.h"

#include "tandem/train/plot/ticks.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>

namespace tandem::train::report {
namespace {

constexpr std::size_t kMostRows = 64;  // of a list; a longer one stays a text
constexpr int kDeepest = 4;

std::string with_blanks(std::string name) {
  std::ranges::replace(name, '_', ' ');
  return name;
}

std::string value_of(const std::string& key, const Json& value) {
  if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
  if (key.ends_with("_bytes") && value.is_number()) return plot::number_text(value.get<double>(), plot::Unit::bytes);
  const std::string text = text_of(value);
  return key == "started" || key == "ended" ? time_text(text) : text;
}

/// `name`: of all that is around it.
void add_value(const std::string& name, const std::string& key, const Json& value, TextTable& table, int depth) {
  const bool is_long = value.is_array() && value.size() > kMostRows;
  if (!value.is_structured() || is_long || depth > kDeepest) {
    if (!name.empty()) table.emplace_back(name, value_of(key, value));
    return;
  }
  // A list of one stands for what is in it.
  for (const auto& item : value.items()) {
    const bool has_name = value.is_object() || value.size() > 1;
    const std::string inner = has_name ? with_blanks(item.key()) : "";
    std::string whole = name;
    if (!whole.empty() && !inner.empty()) whole += ' ';
    whole += inner;
    add_value(whole, has_name ? item.key() : key, item.value(), table, depth + 1);
  }
}

/// "device cpu": "AMD EPYC, 2 cores, 23.5 GiB".
void add_device(const Json& device, TextTable& table) {
  const std::string which = text_field(device, "device");
  std::vector<std::string> parts;
  const auto add = [&](const std::string& text) {
    if (!text.empty()) parts.push_back(text);
  };
  add(text_field(device, "name"));
  if (const double units = number_field(device, "units"); std::isfinite(units))
    add(fmt::format("{} {}{}", units, which == "cpu" ? "core" : "multiprocessor", units == 1.0 ? "" : "s"));
  if (const double bytes = number_field(device, "memory_bytes"); std::isfinite(bytes))
    add(plot::number_text(bytes, plot::Unit::bytes));
  if (const std::string capability = text_field(device, "capability"); !capability.empty())
    add("compute capability " + capability);
  table.emplace_back(which.empty() ? "device" : "device " + which, fmt::format("{}", fmt::join(parts, ", ")));
}

bool is_list_of_objects(const Json& value) {
  return value.is_array() && value.size() <= kMostRows &&
         std::ranges::all_of(value, [](const Json& item) { return item.is_object(); });
}

bool is_short_list(const Json& value) { return value.is_array() && value.size() <= kMostRows; }

}  // namespace

std::string time_text(const std::string& time) {
  const bool is_utc = time.size() == 20 && time[10] == 'T' && time.back() == 'Z';
  return is_utc ? fmt::format("{} {} UTC", time.substr(0, 10), time.substr(11, 5)) : time;
}

std::string name_of_version(const std::string& key) {
  static const std::map<std::string_view, const char*> kNames{
      {"tandem", "Tandem"},      {"vectors", "vector instructions"}, {"onednn", "built with oneDNN"},
      {"mpi", "built with MPI"}, {"cuda", "built with CUDA"},        {"mpi_library", "MPI library"}};
  const auto found = kNames.find(key);
  return found == kNames.end() ? with_blanks(key) : found->second;
}

TextTable environment_table(const Json& environment) {
  static const std::map<std::string_view, const char*> kNames{{"folder", "working directory"}, {"git", "git commit"}};
  TextTable table;
  for (const auto& item : environment.items()) {
    const std::string& key = item.key();
    const Json& value = item.value();
    if (key == "git" && value.is_object()) {
      for (const auto& part : value.items()) {
        const std::string name = part.key() == "dirty" ? "uncommitted changes" : "git " + with_blanks(part.key());
        add_value(name, part.key(), part.value(), table, 1);
      }
    } else if (key == "ranks" && is_short_list(value)) {
      for (std::size_t rank = 0; rank < value.size(); ++rank)
        add_value(fmt::format("rank {}", rank), key, value[rank], table, 1);
    } else if (key == "devices" && is_list_of_objects(value)) {
      for (const Json& device : value) add_device(device, table);
    } else if (key == "versions" && value.is_object()) {
      for (const auto& version : value.items())
        add_value(name_of_version(version.key()), version.key(), version.value(), table, 1);
    } else {
      const auto known = kNames.find(key);
      add_value(known == kNames.end() ? with_blanks(key) : known->second, key, value, table, 1);
    }
  }
  return table;
}

}  // namespace tandem::train::report

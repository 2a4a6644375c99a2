// From lines of JSON to lines of CSV.
#include "tandem/train/curves_file.h"

#include "tandem/core/error.h"
#include "tandem/layers/file.h"
#include "tandem/train/parse_json.h"

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

namespace tandem::train {
namespace {

using Json = nlohmann::ordered_json;
using Fields = std::vector<std::pair<std::string, std::string>>;

/// In quotes where it has to be.
std::string field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

/// The fields of a JSON value, named by the way to them: entries of a list by their "name", else by their number.
void add_fields(const std::string& path, const Json& value, Fields& fields) {
  const auto inner = [&](const std::string& name) { return path.empty() ? name : path + "." + name; };
  if (value.is_object()) {
    for (const auto& [name, element] : value.items()) add_fields(inner(name), element, fields);
  } else if (value.is_array()) {
    for (std::size_t i = 0; i < value.size(); ++i) {
      Json element = value[i];
      std::string name = std::to_string(i);
      if (element.is_object() && element.contains("name") && element["name"].is_string()) {
        name = element["name"].get<std::string>();
        element.erase("name");
      }
      add_fields(inner(name), element, fields);
    }
  } else if (value.is_string()) {
    fields.emplace_back(path, value.get<std::string>());
  } else {
    fields.emplace_back(path, value.is_null() ? "" : value.dump());
  }
}

constexpr std::size_t kMostLine = 4 << 20;  // JSON takes some 20 times that in memory

/// By number.
std::map<std::int64_t, Json> epochs_of(const std::string& log) {
  const layers::InputFile is_regular(log);
  std::ifstream file(log, std::ios::binary);
  std::map<std::int64_t, Json> epochs;
  for (std::string line; std::getline(file, line);) {
    if (line.size() > kMostLine) continue;
    if (!line.starts_with(R"({"record":"epoch",)")) continue;  // there may be a thousand steps to an epoch
    Json record = parse_json(line);
    if (!record.is_object() || !record.contains("epoch") || !record["epoch"].is_number_integer()) continue;
    record.erase("record");
    const auto number = record["epoch"].get<std::int64_t>();
    epochs[number] = std::move(record);
  }
  require(!file.bad(), "{}: cannot be read", log);
  return epochs;
}

}  // namespace

void write_curves(const std::string& log, const std::string& csv) {
  std::vector<std::string> columns;
  std::map<std::string, std::size_t> places;
  std::vector<std::vector<std::string>> rows;
  for (const auto& [number, record] : epochs_of(log)) {
    Fields fields;
    add_fields("", record, fields);
    std::vector<std::string>& row = rows.emplace_back();
    for (const auto& [name, value] : fields) {
      const auto [place, is_new] = places.emplace(name, columns.size());
      if (is_new) columns.push_back(name);
      if (row.size() < columns.size()) row.resize(columns.size());
      row[place->second] = value;
    }
  }
  std::string text;
  if (columns.empty()) columns.emplace_back("epoch");
  const auto add_line = [&](const std::vector<std::string>& values) {
    for (std::size_t i = 0; i < columns.size(); ++i) {
      if (i > 0) text += ',';
      if (i < values.size()) text += field(values[i]);
    }
    text += '\n';
  };
  add_line(columns);
  for (const auto& row : rows) add_line(row);
  layers::AtomicFile file(csv);
  file.write(text.data(), static_cast<std::int64_t>(text.size()));
  file.commit();
}

}  // namespace tandem::train

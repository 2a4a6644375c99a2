// From lines of JSON to lines of CSV.
#include "tandem/train/curves_file.h"

#include "tandem/core/error.h"
#include "tandem/layers/file.h"
#include "tandem/train/parse_json.h"

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
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

/// Calls `use` for each record of a kind that can be read, with its number; begin_session() for each "run" record.
template <typename Use, typename Begin>
void read_records(const std::string& log, const std::string& kind, const Use& use, const Begin& begin_session) {
  const layers::InputFile is_regular(log);
  std::ifstream file(log, std::ios::binary);
  const std::string start = R"({"record":")" + kind + R"(",)";
  for (std::string line; std::getline(file, line);) {
    if (line.size() > kMostLine) continue;
    if (line.starts_with(R"({"record":"run",)")) begin_session();
    if (!line.starts_with(start)) continue;  // other records are not parsed: there may be a thousand steps to an epoch
    Json record = parse_json(line);
    if (!record.is_object() || !record.contains(kind) || !record[kind].is_number_integer()) continue;
    record.erase("record");
    Fields fields;
    add_fields("", record, fields);
    use(record[kind].get<std::int64_t>(), fields);
  }
  require(!file.bad(), "{}: cannot be read", log);
}

/// Twice through the log: names come first, and of a million steps only the lines are kept.
void write_table(const std::string& log, const std::string& csv, const std::string& kind) {
  std::vector<std::string> columns;
  std::map<std::string, std::size_t> places;
  read_records(
      log, kind,
      [&](std::int64_t, const Fields& fields) {
        for (const auto& [name, value] : fields) {
          if (places.emplace(name, columns.size()).second) columns.push_back(name);
        }
      },
      [] {});
  if (columns.empty()) columns.push_back(kind);
  const auto line_of = [&](const std::vector<std::string>& values) {
    std::string line;
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (i > 0) line += ',';
      line += field(values[i]);
    }
    line += '\n';
    return line;
  };
  std::map<std::int64_t, std::string> lines;
  bool is_first = false;  // of its session
  read_records(
      log, kind,
      [&](std::int64_t number, const Fields& fields) {
        std::vector<std::string> values(columns.size());
        for (const auto& [name, value] : fields) values[places.at(name)] = value;
        if (std::exchange(is_first, false)) lines.erase(lines.lower_bound(number), lines.end());
        lines[number] = line_of(values);
      },
      [&] { is_first = true; });
  std::string text = line_of(columns);
  for (const auto& [number, line] : lines) text += line;
  layers::write_file(csv, text);
}

}  // namespace

void write_curves(const std::string& log, const std::string& csv) { write_table(log, csv, "epoch"); }

void write_steps(const std::string& log, const std::string& csv) { write_table(log, csv, "step"); }

}  // namespace tandem::train

// Config files by toml++. CLI11's own reader cuts quoted strings at '#' and splits them at commas.
#include "config_file.h"

#include "apps/arguments/arguments.h"
#include "apps/arguments/toml_lines.h"
#include "apps/arguments/toml_value.h"
#include "tandem/core/error.h"

#include <toml++/toml.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string_view>

namespace tandem::apps {
namespace {

constexpr std::uintmax_t kLargestFile = 1 << 20;

std::optional<std::string> joined(const toml::array& array) {
  std::string all;
  for (const toml::node& element : array) {
    const auto text = toml_value_text(element);
    if (!text) return std::nullopt;
    if (&element != array.get(0)) all += ',';
    all += *text;
  }
  return all;
}

}  // namespace

std::vector<ConfigEntry> parse_config(const std::string& text, const std::string& file) {
  check_toml_lines(text, file);
  const auto parse = [&] {
    try {
      return toml::parse(text);
    } catch (const toml::parse_error& error) {
      fail("{}:{}: {}; write one 'name = value' per line, text in quotes", file, error.source().begin.line,
           printable(error.description()));
    }
  };
  std::vector<ConfigEntry> entries;
  for (const auto& [key, node] : parse()) {
    const int line = static_cast<int>(key.source().begin.line);
    require(!key.str().empty(), "{}:{}: a value without a name; write one 'name = value' per line, text in quotes",
            file, line);
    const std::string name = printable(key.str());
    require(name == key.str(), "{}:{}: '{}': control characters are not taken, leave them out", file, line, name);
    const auto value = node.is_array() ? joined(*node.as_array()) : toml_value_text(node);
    require(value.has_value(),
            "{}:{}: '{}' is {}: write one 'name = value' per line, with a number, true, false, text or a list of them",
            file, line, name, node.is_table() ? "a section" : "no such value");
    entries.push_back({name, *value, line});
  }
  std::ranges::stable_sort(entries, {}, &ConfigEntry::line);  // a TOML table is sorted by name
  return entries;
}

namespace {

std::string read_text(const std::string& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  require(status.type() != std::filesystem::file_type::not_found,
          "--config {}: no such file; --print-config prints one", path);
  require(!error, "--config {}: cannot be read: {}; check its permissions", path, error.message());
  require(!std::filesystem::is_directory(status), "--config {}: is a directory, not a file; name a file in it", path);
  std::ifstream file(path, std::ios::binary);
  require(file.good(), "--config {}: cannot be read; check its permissions and the disk", path);
  std::string text(kLargestFile + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  require(!file.bad(), "--config {}: cannot be read; check its permissions and the disk", path);
  text.resize(static_cast<std::size_t>(file.gcount()));
  require(text.size() <= kLargestFile, "--config {}: larger than 1 MiB, this is no config file; name another", path);
  return text;
}

}  // namespace

std::vector<ConfigEntry> read_config(const std::string& path) { return parse_config(read_text(path), path); }

std::vector<ConfigEntry> ConfigReader::read(const std::string& path) {
  const std::lock_guard lock(mutex_);
  const auto [place, is_new] = readings_.try_emplace(path);
  Reading& reading = place->second;
  if (is_new) {
    try {
      reading.text = read_text(path);
    } catch (const Error&) {
      reading.problem = std::current_exception();
    }
  }
  if (reading.problem) std::rethrow_exception(reading.problem);
  return parse_config(reading.text, path);
}

}  // namespace tandem::apps

// A strict reader of flat TOML. CLI11's own reader cuts quoted strings at '#' and splits them at commas.
#include "config_file.h"

#include "core/error.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>

namespace tandem::apps {
namespace {

constexpr std::uintmax_t kLargestFile = 1 << 20;

// Walks along one line; what it throws names file and line.
class LineReader {
 public:
  LineReader(std::string_view line, const std::string& file, int number) : rest_(line), file_(file), number_(number) {}

  template <typename... Args>
  [[noreturn]] void wrong(fmt::format_string<Args...> format, Args&&... args) const {
    fail("{}:{}: {}", file_, number_, fmt::format(format, std::forward<Args>(args)...));
  }

  void skip_space() {
    while (!rest_.empty() && (rest_.front() == ' ' || rest_.front() == '\t')) rest_.remove_prefix(1);
  }
  bool at_end() {
    skip_space();
    return rest_.empty() || rest_.front() == '#';
  }
  bool take(char c) {
    skip_space();
    if (rest_.empty() || rest_.front() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  bool next_is(char c) {
    skip_space();
    return !rest_.empty() && rest_.front() == c;
  }

  std::string key() {
    if (next_is('"') || next_is('\'')) return quoted();
    return bare(
        [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' || c == '.'; });
  }

  std::string value() {
    if (take('[')) return array();
    if (next_is('"') || next_is('\'')) return quoted();
    std::string text = bare([](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '+' || c == '-' || c == '_';
    });
    if (text == "true" || text == "false") return text;
    const char first = text.empty() ? ' ' : text.front();
    const bool number = std::isdigit(static_cast<unsigned char>(first)) != 0 || first == '+' || first == '-';
    if (!number)
      wrong("a value is a number, true, false or text in quotes, not '{}'",
            text.empty() ? rest_ : std::string_view(text));
    std::erase(text, '_');
    return text;
  }

 private:
  template <typename Allowed>
  std::string bare(Allowed allowed) {
    const auto length = static_cast<std::size_t>(std::find_if_not(rest_.begin(), rest_.end(), allowed) - rest_.begin());
    std::string text(rest_.substr(0, length));
    rest_.remove_prefix(length);
    return text;
  }

  std::string quoted() {
    const char quote = rest_.front();
    rest_.remove_prefix(1);
    std::string text;
    while (!rest_.empty() && rest_.front() != quote) {
      char c = rest_.front();
      rest_.remove_prefix(1);
      if (c == '\\' && quote == '"') c = escaped();
      text += c;
    }
    if (rest_.empty()) wrong("text without its closing {}", quote);
    rest_.remove_prefix(1);
    return text;
  }

  char escaped() {
    const char c = rest_.empty() ? ' ' : rest_.front();
    if (!rest_.empty()) rest_.remove_prefix(1);
    switch (c) {
      case '"':
      case '\\':
        return c;
      case 'n':
        return '\n';
      case 't':
        return '\t';
      case 'r':
        return '\r';
      default:
        wrong("unknown escape \\{} (a path with backslashes can stand in single quotes)", c);
    }
  }

  std::string array() {
    std::string joined;
    bool first = true;
    while (!take(']')) {
      if (!first && !take(',')) wrong("an array needs commas between its values and a closing ] on the same line");
      if (take(']')) return joined;
      if (at_end()) wrong("an array needs its closing ] on the same line");
      if (!first) joined += ',';
      joined += value();
      first = false;
    }
    return joined;
  }

  std::string_view rest_;
  const std::string& file_;
  int number_;
};

}  // namespace

std::vector<ConfigEntry> parse_config(const std::string& text, const std::string& file) {
  std::vector<ConfigEntry> entries;
  int number = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line = std::string_view(text).substr(begin, end - begin);
    if (line.ends_with('\r')) line.remove_suffix(1);
    begin = end + 1;
    LineReader reader(line, file, ++number);
    if (reader.at_end()) continue;
    if (reader.next_is('[')) reader.wrong("sections are not used here: write one 'name = value' per line");
    ConfigEntry entry{reader.key(), "", number};
    if (entry.name.empty() || !reader.take('=')) reader.wrong("expected 'name = value'");
    if (reader.at_end()) reader.wrong("'{}' has no value", entry.name);
    entry.value = reader.value();
    if (!reader.at_end()) reader.wrong("more text after the value of '{}'", entry.name);
    for (const ConfigEntry& other : entries) {
      if (other.name == entry.name) reader.wrong("'{}' was set in line {} already", entry.name, other.line);
    }
    entries.push_back(std::move(entry));
  }
  return entries;
}

std::vector<ConfigEntry> read_config(const std::string& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  require(status.type() != std::filesystem::file_type::not_found, "--config {}: no such file", path);
  require(!error, "--config {}: cannot be read: {}", path, error.message());
  require(!std::filesystem::is_directory(status), "--config {}: is a directory, not a file", path);
  std::ifstream file(path, std::ios::binary);
  require(file.good(), "--config {}: cannot be read", path);
  std::string text(kLargestFile + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  require(!file.bad(), "--config {}: cannot be read", path);
  text.resize(static_cast<std::size_t>(file.gcount()));
  require(text.size() <= kLargestFile, "--config {}: larger than 1 MiB, this is no config file", path);
  return parse_config(text, path);
}

}  // namespace tandem::apps

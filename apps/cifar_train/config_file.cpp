// Config files by toml++. CLI11's own reader cuts quoted strings at '#' and splits them at commas.
#include "config_file.h"

#include "apps/arguments/arguments.h"
#include "tandem/core/error.h"

#include <toml++/toml.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string_view>

namespace tandem::apps {
namespace {

constexpr std::uintmax_t kLargestFile = 1 << 20;

/// toml++ calls itself for each dot in the name of a value or section: the stack must hold that.
constexpr std::size_t kLongestLine = 8192;

/// A value as the command line would give it; nothing for what no option is (tables, dates, arrays in arrays).
std::optional<std::string> text_of(const toml::node& node) {
  if (const auto* const text = node.as_string()) return text->get();
  if (const auto* const flag = node.as_boolean()) return flag->get() ? "true" : "false";
  if (const auto* const integer = node.as_integer()) return fmt::format("{}", integer->get());
  if (const auto* const real = node.as_floating_point()) return fmt::format("{}", real->get());
  return std::nullopt;
}

std::optional<std::string> joined(const toml::array& array) {
  std::string all;
  for (const toml::node& element : array) {
    const auto text = text_of(element);
    if (!text) return std::nullopt;
    if (&element != array.get(0)) all += ',';
    all += *text;
  }
  return all;
}

/// Whether a line begins as a section whose name cannot follow: toml++ takes it for a fault of its own (an assertion).
bool is_nameless_section(std::string_view line) {
  const auto skip_blanks = [&] { line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size())); };
  skip_blanks();
  if (!line.starts_with('[')) return false;
  for (int brackets = 0; brackets < 2 && line.starts_with('['); ++brackets) {  // one more is no name
    line.remove_prefix(1);
    skip_blanks();
  }
  constexpr std::string_view kFirstOfName = "-_\"'";
  return line.empty() || !(std::isalnum(static_cast<unsigned char>(line[0])) != 0 ||
                           kFirstOfName.find(line[0]) != std::string_view::npos);
}

/// Takes texts and names off the front of a line.
class LineScanner {
 public:
  explicit LineScanner(std::string_view line) : rest_(line) {}

  void skip_blanks() { rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t\r"), rest_.size())); }
  bool skip(char c) {
    if (!rest_.starts_with(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  /// A name, or a value without quotes.
  bool skip_word() {
    const auto is_part = [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
             std::string_view("-_.+:").find(c) != std::string_view::npos;
    };
    const auto end = std::ranges::find_if_not(rest_, is_part);
    const auto length = static_cast<std::size_t>(end - rest_.begin());
    rest_.remove_prefix(length);
    return length > 0;
  }
  bool skip_text() {
    if (!rest_.starts_with('"') && !rest_.starts_with('\'')) return false;
    const char quote = rest_.front();
    for (std::size_t i = 1; i < rest_.size(); ++i) {
      if (rest_[i] == quote) {
        rest_.remove_prefix(i + 1);
        return true;
      }
      if (rest_[i] == '\\' && quote == '"') ++i;
    }
    return false;
  }
  bool is_at_end() const { return rest_.empty() || rest_.front() == '#'; }

 private:
  std::string_view rest_;
};

/// Whether a line is name = "text" or name = ["text", ...], maybe with a comment.
bool is_text_setting(std::string_view line) {
  LineScanner scanner(line);
  const auto take_blanks_and = [&](char c) {
    scanner.skip_blanks();
    return scanner.skip(c);
  };
  scanner.skip_blanks();
  if (!scanner.skip_word() || !take_blanks_and('=')) return false;
  if (take_blanks_and('[')) {
    do {
      scanner.skip_blanks();
      if (!scanner.skip_text() && !scanner.skip_word()) return false;
    } while (take_blanks_and(','));
    if (!scanner.skip(']')) return false;
  } else if (!scanner.skip_text()) {
    return false;
  }
  scanner.skip_blanks();
  return scanner.is_at_end();
}

/// What is wrong with a line outside of texts in quotes and comments, or nothing. Characters beyond ASCII are names or
/// values of nothing there, and toml++ takes some of them for a fault of its own (unreachable code), also between
/// quotes that are none to it, as in 8'x': a line has such characters only in texts of a form that has but one meaning,
/// and behind it. Texts over several lines would hide them; no option takes such a text, nor a table in braces, one of
/// which in a list is another fault of its own to toml++.
std::string_view problem_of(std::string_view line) {
  char quote = '\0';
  bool is_ascii = true;
  for (std::size_t i = 0; i < line.size() && (quote != '\0' || line[i] != '#'); ++i) {
    const char c = line[i];
    is_ascii = is_ascii && static_cast<unsigned char>(c) < 0x80;
    if (quote != '\0') {
      if (c == '\\' && quote == '"')
        ++i;
      else if (c == quote)
        quote = '\0';
    } else if (c == '"' || c == '\'') {
      if (line.substr(i, 3) == std::string(3, c)) return "text in three quotes";
      quote = c;
    } else if (c == '{' || c == '}') {
      return "a table in braces";
    }
  }
  return is_ascii || is_text_setting(line) ? "" : "a character beyond ASCII outside of quotes";
}

/// What must hold before the parser is asked.
void check_lines(const std::string& text, const std::string& file) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  std::size_t begin = text.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0;
  for (int line = 1; begin < text.size(); ++line) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    require(end - begin <= kLongestLine,
            "{}:{}: longer than {} bytes; write one 'name = value' per line, text in quotes", file, line, kLongestLine);
    require(!is_nameless_section(std::string_view(text).substr(begin, end - begin)),
            "{}:{}: a section without a name; write one 'name = value' per line, text in quotes", file, line);
    const std::string_view problem = problem_of(std::string_view(text).substr(begin, end - begin));
    require(problem.empty(), "{}:{}: {}; write one 'name = value' per line, text in quotes", file, line, problem);
    begin = end + 1;
  }
}

}  // namespace

std::vector<ConfigEntry> parse_config(const std::string& text, const std::string& file) {
  check_lines(text, file);
  const auto parse = [&] {
    try {
      return toml::parse(text);
    } catch (const toml::parse_error& error) {
      fail("{}:{}: {}; write one 'name = value' per line, text in quotes", file, error.source().begin.line,
           error.description());
    }
  };
  std::vector<ConfigEntry> entries;
  for (const auto& [key, node] : parse()) {
    const int line = static_cast<int>(key.source().begin.line);
    require(!key.str().empty(), "{}:{}: a value without a name; write one 'name = value' per line, text in quotes",
            file, line);
    const std::string name = printable(key.str());
    require(name == key.str(), "{}:{}: '{}': control characters are not taken, leave them out", file, line, name);
    const auto value = node.is_array() ? joined(*node.as_array()) : text_of(node);
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

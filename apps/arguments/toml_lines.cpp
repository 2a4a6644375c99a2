// What toml++ takes for a fault of its own must not reach it.
#include "apps/arguments/toml_lines.h"

#include "tandem/core/error.h"

#include <algorithm>
#include <cctype>
#include <string_view>

namespace tandem::apps {
namespace {

/// toml++ calls itself for each dot in the name of a value or section: the stack must hold that.
constexpr std::size_t kLongestLine = 8192;

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

/// Whether a line is name = "text" or name = ["text", ...], maybe with a comment, or a part of such a list.
bool is_text_setting(std::string_view line, bool begins_in_list) {
  LineScanner scanner(line);
  const auto take_blanks_and = [&](char c) {
    scanner.skip_blanks();
    return scanner.skip(c);
  };
  const auto take_value = [&] {
    scanner.skip_blanks();
    return scanner.skip_text() || scanner.skip_word();
  };
  if (!begins_in_list && (!take_value() || !take_blanks_and('='))) return false;
  if (begins_in_list || take_blanks_and('[')) {
    take_blanks_and(',');
    while (take_value() && take_blanks_and(',')) {
    }
    take_blanks_and(']');
  } else if (!take_value()) {
    return false;
  }
  scanner.skip_blanks();
  return scanner.is_at_end();
}

/// Whether there is what toml++ may take for a date, a blank, and a digit: where nothing follows that, it looks for the
/// rest of a time beyond the end of the value, a fault of its own (an assertion). `line` is without underscores, which
/// toml++ passes over.
bool has_date_and_digit(std::string_view line) {
  constexpr std::size_t kDate = 10;  // 2026-11-26
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  for (std::size_t i = kDate; i + 1 < line.size(); ++i) {
    if (line[i] == ' ' && is_digit(line[i + 1]) && line[i - 6] == '-' && line[i - 3] == '-' &&
        is_digit(line[i - kDate]))
      return true;
  }
  return false;
}

/// Looks at the lines of a file in their order, outside of texts in quotes and comments.
///
/// Characters beyond ASCII are names or values of nothing there, and toml++ takes some of them for a fault of its own
/// (unreachable code), also between quotes that are none to it, as in 8'x': a line has such characters only in texts of
/// a form that has but one meaning, and behind it. Texts over several lines would hide them; no option takes such a
/// text, nor a table in braces, one of which in a list is another fault of its own to toml++, nor a date. What follows
/// a number without a blank or comma is a part of it to toml++, quotes and brackets too: a date may hide behind them.
class LineCheck {
 public:
  /// What is wrong with the next line, or nothing.
  std::string_view problem_of(std::string_view line) {
    const bool begins_in_list = depth_ > 0;
    const bool is_section = !begins_in_list && line.find_first_not_of(" \t") == line.find('[');
    char quote = '\0';
    bool is_ascii = true;
    int equal_signs = begins_in_list ? 1 : 0;
    std::string outside;
    for (std::size_t i = 0; i < line.size() && (quote != '\0' || line[i] != '#'); ++i) {
      const char c = line[i];
      is_ascii = is_ascii && static_cast<unsigned char>(c) < 0x80;
      if (quote != '\0') {
        if (c == '\\' && quote == '"')
          ++i;
        else if (c == quote)
          quote = '\0';
        continue;
      }
      if (c != '_') outside += c;
      const bool begins_value = i == 0 || std::string_view(" \t=,[").find(line[i - 1]) != std::string_view::npos;
      if (c == '"' || c == '\'') {
        if (line.substr(i, 3) == std::string(3, c)) return "text in three quotes";
        if (!begins_value) return "a quote behind other characters";
        quote = c;
      } else if (c == '[') {
        if (!begins_value) return "a bracket behind other characters";
        if (!is_section) ++depth_;
      } else if (c == ']') {
        depth_ = std::max(depth_ - 1, 0);
      } else if (c == '=') {
        if (++equal_signs > 1) return begins_in_list ? "'=' in a list" : "'=' behind a value";
      } else if (c == '{' || c == '}') {
        return "a table in braces";
      }
    }
    if (has_date_and_digit(outside)) return "a date";
    if (is_ascii || is_text_setting(line, begins_in_list)) return "";
    return "a character beyond ASCII outside of quotes";
  }

 private:
  int depth_ = 0;  // lists that are open
};

}  // namespace

void check_toml_lines(const std::string& text, const std::string& file) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  std::size_t begin = text.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0;
  LineCheck check;
  for (int line = 1; begin < text.size(); ++line) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    require(end - begin <= kLongestLine,
            "{}:{}: longer than {} bytes; write one 'name = value' per line, text in quotes", file, line, kLongestLine);
    require(!is_nameless_section(std::string_view(text).substr(begin, end - begin)),
            "{}:{}: a section without a name; write one 'name = value' per line, text in quotes", file, line);
    const std::string_view problem = check.problem_of(std::string_view(text).substr(begin, end - begin));
    require(problem.empty(), "{}:{}: {}; write one 'name = value' per line, text in quotes", file, line, problem);
    begin = end + 1;
  }
}

}  // namespace tandem::apps

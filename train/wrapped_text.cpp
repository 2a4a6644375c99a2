// One line at a time.
#include "tandem/train/wrapped_text.h"

#include "tandem/train/character_width.h"
#include "tandem/train/progress_format.h"

#include <algorithm>

namespace tandem::train {
namespace {

constexpr std::size_t kLabelEnd = 11;              // "  ranks    "
constexpr std::string_view kBeforeOption = " --";  // in a line for a shell

bool is_labelled(std::string_view line) {
  return line.size() > kLabelEnd && line.starts_with("  ") && line[2] != ' ' && line[kLabelEnd - 1] == ' ' &&
         line[kLabelEnd] != ' ';
}

/// Whether a shell takes the next character as it is, or as one of a quoted word.
class ShellQuotes {
 public:
  explicit ShellQuotes(std::string_view line) : line_(line) {}
  /// To be called for all bytes, from the first one on.
  bool holds(std::size_t i) {
    const bool is_held = is_quoted_ || is_escaped_;
    const char c = line_[i];
    if (!is_escaped_ && c == '\'') is_quoted_ = !is_quoted_ && line_.find('\'', i + 1) != line_.npos;
    is_escaped_ = !is_quoted_ && !is_escaped_ && c == '\\';
    return is_held;
  }

 private:
  std::string_view line_;
  bool is_quoted_ = false, is_escaped_ = false;
};

/// The blank before which a line of at most `columns` ends, or the first one behind `begin` where a word is too wide
/// for that; npos where there is none. `before`: what must follow.
std::size_t break_of(std::string_view line, std::size_t begin, int columns, std::string_view before) {
  std::size_t last = line.npos, gap = line.npos;
  int width = 0;
  ShellQuotes quotes(line);
  for (std::size_t i = 0, bytes = 0; i < line.size(); i += bytes) {
    const Character character = character_at(line, i);
    bytes = character.bytes;
    const bool is_held = quotes.holds(i) && before == kBeforeOption;
    const bool is_break =
        !is_held && i > begin && line[i] == ' ' && line[i - 1] != ' ' && line.substr(i).starts_with(before);
    if (is_break) {
      if (width > columns && last != line.npos) break;
      last = i;
      if (width > columns) break;
      if (line.substr(i).starts_with("  ")) gap = i;
    }
    width += character.columns;
  }
  const bool is_gap = gap != line.npos && gap >= static_cast<std::size_t>(columns) / 2;
  return is_gap ? gap : last;
}

std::string broken(std::string line, int columns, bool is_for_shell) {
  const std::size_t begin = std::min(line.find_first_not_of(' '), line.size());
  const std::string_view before = is_for_shell ? kBeforeOption : " ", end = is_for_shell ? " \\\n" : "\n";
  const bool has_label = !is_for_shell && is_labelled(line);
  std::size_t indent = has_label ? kLabelEnd : begin + 2;
  std::size_t text = has_label ? kLabelEnd : begin;
  if (2 * indent > static_cast<std::size_t>(columns)) indent = 2;
  std::string lines;
  while (display_width(line) > columns) {
    const std::size_t at = break_of(line, text, columns - static_cast<int>(end.size()) + 1, before);
    const std::size_t next = at == line.npos ? line.npos : line.find_first_not_of(' ', at);
    if (next == line.npos) break;
    lines.append(line, 0, at).append(end);
    line = std::string(indent, ' ').append(line, next);
    text = indent;
  }
  return lines + line;
}

}  // namespace

std::string wrapped(std::string_view text, int columns) {
  if (columns <= 0) return std::string(text);
  std::string result;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    const bool is_for_shell = line.substr(std::min(line.find_first_not_of(' '), line.size())).starts_with("--");
    result += broken(std::string(line), columns, is_for_shell);
    if (end == text.npos) break;
    result += '\n';
    text.remove_prefix(end + 1);
  }
  return result;
}

std::string wrapped_command(std::string_view line, int columns) {
  return columns > 0 ? broken(std::string(line), columns, true) : std::string(line);
}

}  // namespace tandem::train

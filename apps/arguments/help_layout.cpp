// Words in columns.
#include "apps/arguments/help_layout.h"

#include "tandem/core/number_text.h"
#include "tandem/train/terminal.h"
#include "tandem/train/wrapped_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <sstream>

namespace tandem::apps {
namespace {

constexpr int kWidest = 80, kNarrowest = 20;
constexpr int kTextColumn = 28, kNarrowTextColumn = 6;
constexpr int kNarrow = 60;  // pages below that have no room for two columns

/// Words from column `indent` on; `line` is what is already in the first line.
std::string in_column(std::string line, const std::string& text, std::size_t indent, std::size_t columns) {
  std::string out;
  if (line.size() + 2 > indent && !line.empty()) {
    out += line + "\n";
    line.clear();
  }
  line.resize(indent, ' ');
  std::istringstream words(text);
  bool is_empty = true;
  for (std::string word; words >> word;) {
    if (!is_empty && line.size() + 1 + word.size() > columns) {
      out += line + "\n";
      line.assign(indent, ' ');
      is_empty = true;
    }
    line += (is_empty ? "" : " ") + word;
    is_empty = false;
  }
  return out + line + "\n";
}

}  // namespace

int help_columns() {
  int columns = train::line_columns(stdout);
  if (columns == 0) {
    const char* const given = std::getenv("COLUMNS");
    columns = given == nullptr ? 0 : parse_number<int>(given).value_or(0);
  }
  return columns <= 0 ? kWidest : std::clamp(columns, kNarrowest, kWidest);
}

std::string help_paragraph(std::string_view text, int columns) {
  return in_column("", std::string(text), 0, static_cast<std::size_t>(columns));
}

std::string help_entry(const std::string& name, const std::string& text, int columns) {
  const int indent = columns < kNarrow ? kNarrowTextColumn : kTextColumn;
  return in_column("  " + name, text, static_cast<std::size_t>(indent), static_cast<std::size_t>(columns));
}

std::string help_example(const std::string& command, const std::string& comment, int columns) {
  const std::string line = comment.empty() ? "  " + command : fmt::format("  {:<46}  # {}", command, comment);
  if (static_cast<int>(line.size()) <= columns) return line + "\n";
  const std::string above = comment.empty() ? "" : train::wrapped("  # " + comment, columns) + "\n";
  return above + train::wrapped_command("  " + command, columns) + "\n";
}

}  // namespace tandem::apps

// Layout of the help page.
#include "help_text.h"

#include <fmt/format.h>

#include <sstream>

namespace tandem::apps {
namespace {

constexpr std::size_t kColumns = 80;
constexpr std::size_t kTextColumn = 28;

// Words of `text`, wrapped between kTextColumn and kColumns; `first` is the text already in the first line.
std::string wrapped(std::string first, const std::string& text, std::size_t indent) {
  std::string out;
  std::string line = std::move(first);
  if (line.size() + 2 > indent && !line.empty()) {
    out += line + "\n";
    line.clear();
  }
  line.resize(indent, ' ');
  std::istringstream words(text);
  bool empty = true;
  for (std::string word; words >> word;) {
    if (!empty && line.size() + 1 + word.size() > kColumns) {
      out += line + "\n";
      line.assign(indent, ' ');
      empty = true;
    }
    line += (empty ? "" : " ") + word;
    empty = false;
  }
  return out + line + "\n";
}

std::string default_text(const Option& option) {
  const auto value = option.get();
  if (!value) return "";
  if (const auto* text = std::get_if<std::string>(&*value)) return text->empty() ? "" : fmt::format(" [{}]", *text);
  if (option.is_flag()) return std::get<bool>(*value) ? " [on]" : "";
  return fmt::format(" [{}]", train::to_toml(*value));
}

std::string entry(const Option& option) {
  const bool choices = option.value_name.find('|') != std::string::npos;
  const std::string name = option.is_flag()
                               ? fmt::format("  --{}", option.name)
                               : fmt::format("  --{} {}", option.name, choices ? "NAME" : option.value_name);
  std::string text = option.help;
  if (choices) {
    std::string spaced;
    for (const char c : option.value_name) spaced += c == '|' ? std::string(", ") : std::string(1, c);
    text += ": " + spaced;
  }
  return wrapped(name, text + default_text(option), kTextColumn);
}

}  // namespace

std::string help_text(const HelpPage& page, const OptionTable& table) {
  std::string out = wrapped("", page.summary, 0);
  out += fmt::format("\nUsage: {0} [options]\n       mpirun -np N {0} [options]\n", page.program);
  std::string group;
  for (const Option& option : table.options()) {
    if (option.group != group) out += fmt::format("\n{}\n", group = option.group);
    out += entry(option);
  }
  out += "\nGeneral\n";
  out += wrapped("  --config FILE", "read options from FILE, lines 'name = value' (TOML); the command line wins",
                 kTextColumn);
  out +=
      wrapped("  --print-config",
              "print all options as a config file and stop; defaults that follow from other options stand in comments",
              kTextColumn);
  out += wrapped("  --version", "print the version and stop", kTextColumn);
  out += wrapped("  -h, --help", "print this page and stop", kTextColumn);
  out += "\nA flag is switched off by --no-NAME. Defaults stand in [brackets].\n\nExamples\n";
  for (const std::string& example : page.examples) out += "  " + example + "\n";
  return out;
}

}  // namespace tandem::apps

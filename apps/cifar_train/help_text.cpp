// Layout of the help page.
#include "help_text.h"

#include "apps/arguments/help_layout.h"
#include "apps/arguments/own_files.h"
#include "tandem/train/wrapped_text.h"

#include <fmt/format.h>

namespace tandem::apps {
namespace {

std::string default_text(const Option& option) {
  const auto value = option.get();
  if (!value) return "";
  if (const auto* text = std::get_if<std::string>(&*value)) return text->empty() ? "" : fmt::format(" [{}]", *text);
  if (option.is_flag()) return std::get<bool>(*value) ? " [on]" : "";
  return fmt::format(" [{}]", train::to_toml(*value));
}

std::string entry(const Option& option, int columns) {
  const bool choices = option.value_name.find('|') != std::string::npos;
  const std::string name = option.is_flag() ? fmt::format("--{}", option.name)
                                            : fmt::format("--{} {}", option.name, choices ? "NAME" : option.value_name);
  std::string text = option.help;
  if (choices) {
    std::string spaced;
    for (const char c : option.value_name) spaced += c == '|' ? std::string(", ") : std::string(1, c);
    text += ": " + spaced;
  }
  return help_entry(name, text + default_text(option), columns);
}

}  // namespace

std::string help_text(const HelpPage& page, const OptionTable& table, int columns) {
  std::string out = help_paragraph(page.summary, columns);
  out +=
      train::wrapped(fmt::format("\nUsage: {0} [options]\n       mpirun -np N {0} [options]\n", page.program), columns);
  std::string group;
  for (const Option& option : table.options()) {
    if (option.group != group) out += fmt::format("\n{}\n", group = option.group);
    out += entry(option, columns);
  }
  out += "\nGeneral\n";
  out += help_entry("--config FILE", "read options from FILE, lines 'name = value' (TOML); the command line wins",
                    columns);
  out +=
      help_entry("--recipe NAME",
                 fmt::format("train as a recipe says, a config file that comes with the program: {}; --config and the "
                             "command line win",
                             fmt::join(own_files("recipes", ".toml"), ", ")),
                 columns);
  out += help_entry(
      "--print-config",
      "print all options as a config file and stop; defaults that follow from other options stand in comments",
      columns);
  out += help_entry("--version", "print the version and stop", columns);
  out += help_entry("-h, --help", "print this page and stop", columns);
  out += "\n" + help_paragraph("A flag is switched off by --no-NAME. Defaults stand in [brackets].", columns);
  out += "\nExamples\n";
  for (const auto& [command, comment] : page.examples) out += help_example(command, comment, columns);
  return out;
}

}  // namespace tandem::apps

// CLI11 splits the command line; values and config files are read by the option table.
#include "command_line.h"

#include "apps/arguments/arguments.h"
#include "config_file.h"
#include "core/error.h"
#include "core/suggest.h"

#include <CLI/CLI.hpp>
#include <map>

namespace tandem::apps {
namespace {

std::vector<std::string> known_options(const OptionTable& table) {
  std::vector<std::string> known;
  for (const Option& option : table.options()) {
    known.push_back("--" + option.name);
    if (option.is_flag()) known.push_back("--no-" + option.name);
  }
  known.insert(known.end(), {"--config", "--print-config", "--version", "--help"});
  return known;
}

void apply_config_file(const std::string& path, OptionTable& table,
                       const std::pair<std::string, std::string>& exclusive) {
  const auto given_in = [&](const std::string& name) { return table.find(name)->given(); };
  const bool settled = given_in(exclusive.first) || given_in(exclusive.second);
  for (const ConfigEntry& entry : read_config(path)) {
    Option* option = table.find(entry.name);
    if (option == nullptr) {
      const std::string nearest = nearest_name(entry.name, table.names());
      fail("{}:{}: unknown option '{}'{}", path, entry.line, entry.name,
           nearest.empty() ? std::string() : ": did you mean " + nearest + "?");
    }
    const bool replaced = settled && (entry.name == exclusive.first || entry.name == exclusive.second);
    if (option->given() || replaced) continue;
    option->place = fmt::format("{}:{}", path, entry.line);
    try {
      require_printable(entry.value);
      option->set(entry.value);
    } catch (const Error& error) {
      fail("{}: {}", option->place, error.what());
    }
    option->source = Source::config_file;
  }
}

}  // namespace

CommandLine parse_command_line(int argc, const char* const* argv, OptionTable& table,
                               const std::pair<std::string, std::string>& exclusive) {
  CLI::App app;
  app.set_help_flag();
  app.allow_extras();
  std::string config_path;
  bool help = false;
  bool version = false;
  bool print_config = false;
  app.add_flag("-h,--help", help);
  app.add_flag("--version", version);
  app.add_flag("--print-config", print_config);
  CLI::Option* config = app.add_option("--config", config_path);
  std::map<std::string, std::pair<CLI::Option*, std::string>> texts;
  std::map<std::string, std::pair<CLI::Option*, bool>> flags;
  for (const Option& option : table.options()) {
    const std::string dashed = "--" + option.name;
    if (option.is_flag()) {
      auto& [handle, value] = flags[option.name];
      handle = app.add_flag(dashed + ",!--no-" + option.name, value);
      handle->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    } else {
      // The last one counts, so that a script's defaults can be overridden behind them.
      auto& [handle, value] = texts[option.name];
      handle = app.add_option(dashed, value)->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    }
  }
  require_printable(argc, argv);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    fail_parsing(error);
  }
  require_flag_values(app);
  if (help) return {Request::help, {}};
  if (const auto extras = app.remaining(); !extras.empty()) fail_unknown(extras, known_options(table));
  if (version) return {Request::version, {}};
  for (Option& option : table.options()) {
    if (const auto text = texts.find(option.name); text != texts.end() && text->second.first->count() > 0) {
      option.set(text->second.second);
      option.source = Source::command_line;
    }
    if (const auto flag = flags.find(option.name); flag != flags.end() && flag->second.first->count() > 0) {
      option.set(flag->second.second ? "true" : "false");
      option.source = Source::command_line;
    }
  }
  const auto both_given = [&] { return table.find(exclusive.first)->given() && table.find(exclusive.second)->given(); };
  require(!both_given(), "--{} and --{} exclude each other: give one", exclusive.first, exclusive.second);
  if (config->count() > 0) {
    require_path("--config", config_path);
    apply_config_file(config_path, table, exclusive);
  }
  require(!both_given(), "{}: {} and {} exclude each other: give one", config_path, exclusive.first, exclusive.second);
  return {print_config ? Request::print_config : Request::run, table.settle_choosers()};
}

}  // namespace tandem::apps

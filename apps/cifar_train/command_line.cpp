// CLI11 splits the command line; values and config files are read by the option table.
#include "command_line.h"

#include "apps/arguments/arguments.h"
#include "apps/arguments/own_files.h"
#include "config_file.h"
#include "tandem/core/error.h"
#include "tandem/core/suggest.h"

#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include <algorithm>

namespace tandem::apps {
namespace {

void apply_config_file(const std::string& path, Source source, OptionTable& table,
                       const std::pair<std::string, std::string>& exclusive, ConfigReader& configs) {
  const auto given_in = [&](const std::string& name) { return table.find(name)->given(); };
  const bool settled = given_in(exclusive.first) || given_in(exclusive.second);
  for (const ConfigEntry& entry : configs.read(path)) {
    Option* option = table.find(entry.name);
    if (option == nullptr) {
      const std::string nearest = nearest_name(entry.name, table.names());
      fail("{}:{}: unknown option '{}'{}", path, entry.line, entry.name,
           nearest.empty() ? "; --help lists all options" : ": did you mean " + nearest + "?");
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
    option->source = source;
  }
}

std::string recipe_file(const std::string& name) {
  const std::string folder = own_folder("recipes");
  const std::vector<std::string> names = own_files("recipes", ".toml");
  require(std::ranges::find(names, name) != names.end(), "--recipe: {}; a config file of your own is for --config",
          unknown_name("recipe", name, names));
  return fmt::format("{}/{}.toml", folder, name);
}

/// Whether `option`, which may be null, was given behind the other one.
bool is_last(const CLI::Option* option, const CLI::Option* other, const std::vector<CLI::Option*>& given) {
  const auto last = std::find_if(given.rbegin(), given.rend(), [&](auto* o) { return o == option || o == other; });
  return option != nullptr && last != given.rend() && *last == option;
}

}  // namespace

CommandLine parse_command_line(int argc, const char* const* argv, OptionTable& table,
                               const std::pair<std::string, std::string>& exclusive, ConfigReader& configs) {
  CLI::App app;
  bool version = false;
  bool print_config = false;
  app.add_flag("--version", version);
  app.add_flag("--print-config", print_config);
  const CLI::Option* const config = app.add_option("--config")->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  const CLI::Option* const recipe = app.add_option("--recipe")->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  std::vector<CLI::Option*> handles, switches;
  for (const Option& option : table.options()) {
    const std::string dashed = "--" + option.name;
    handles.push_back(option.is_flag() ? app.add_flag(dashed + ",!--no-" + option.name) : app.add_option(dashed));
    // The last one counts, so that a script's defaults can be overridden behind them.
    handles.back()->multi_option_policy(option.repeats ? CLI::MultiOptionPolicy::TakeAll
                                                       : CLI::MultiOptionPolicy::TakeLast);
    switches.push_back(option.without.empty() ? nullptr : app.add_flag("--no-" + option.name));
  }
  if (!read_arguments(app, argc, argv)) return {Request::help, {}};
  if (version) return {Request::version, {}};
  for (std::size_t i = 0; i < handles.size(); ++i) {
    const bool is_off = is_last(switches[i], handles[i], app.parse_order());
    if (handles[i]->count() == 0 && !is_off) continue;
    Option& option = table.options()[i];
    const std::vector<std::string>& values = handles[i]->results();
    option.set(is_off ? option.without : option.repeats ? fmt::format("{}", fmt::join(values, "; ")) : values.back());
    option.source = Source::command_line;
  }
  const auto both_given = [&] { return table.find(exclusive.first)->given() && table.find(exclusive.second)->given(); };
  require(!both_given(), "--{} and --{} exclude each other: give one", exclusive.first, exclusive.second);
  const auto apply = [&](const std::string& path, Source source) {
    apply_config_file(path, source, table, exclusive, configs);
    require(!both_given(), "{}: {} and {} exclude each other: give one", path, exclusive.first, exclusive.second);
  };
  require(config->count() <= 1, "--config is given more than once");
  if (config->count() == 1) {
    const std::string& path = config->results().front();
    require_path("--config", path);
    apply(path, Source::config_file);
  }
  require(recipe->count() <= 1, "--recipe is given more than once: give one, and options of your own beside it");
  if (recipe->count() == 1) apply(recipe_file(recipe->results().front()), Source::recipe);
  return {print_config ? Request::print_config : Request::run, table.settle_choosers()};
}

}  // namespace tandem::apps

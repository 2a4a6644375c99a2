// Settings of a command line, and what is said of a wrong one.
#pragma once

#include "command_line.h"
#include "settings.h"
#include "tandem/core/error.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace tandem::apps {

struct Parsed {
  Settings settings;
  OptionTable table;
  Request request{};
  std::vector<std::string> notes;
};

inline void parse(Parsed& parsed, std::vector<const char*> arguments, std::int64_t ranks = 1) {
  arguments.insert(arguments.begin(), "cifar_train");
  describe_options(parsed.table, parsed.settings);
  ConfigReader configs;
  auto [request, notes] = parse_command_line(static_cast<int>(arguments.size()), arguments.data(), parsed.table,
                                             {"batch-size", "global-batch-size"}, configs);
  parsed.request = request;
  parsed.notes = std::move(notes);
  resolve(parsed.settings, ranks);
}

inline std::string error_of(const std::vector<const char*>& arguments) {
  try {
    Parsed parsed;
    parse(parsed, arguments);
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

}  // namespace tandem::apps

// Config files: TOML restricted to `key = value`, which is all that a flat list of options needs.
#pragma once

#include <exception>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace tandem::apps {

/// One setting of a config file. Values are given as the command line would: strings without their quotes, arrays
/// joined by commas.
struct ConfigEntry {
  std::string name;
  std::string value;
  int line = 0;
};

/// Reads TOML text, and gives its settings as they come. Tables (sections, dotted keys), dates and keys given twice are
/// refused. `file` is for the messages, "run.toml:3: ...".
std::vector<ConfigEntry> parse_config(const std::string& text, const std::string& file);

/// Reads and parses a file. Throws Error if it cannot be read, is a directory, or is larger than 1 MiB.
std::vector<ConfigEntry> read_config(const std::string& path);

/// The same for all command lines of one process, each file read once, whether it can be read or not: what comes from a
/// pipe is there once, and a file that is changed meanwhile is the same for all. For use by several threads.
class ConfigReader {
 public:
  std::vector<ConfigEntry> read(const std::string& path);

 private:
  std::mutex mutex_;
  struct Reading {
    std::string text;
    std::exception_ptr problem;  // why it could not be read
  };
  std::map<std::string, Reading> readings_;  // by path
};

}  // namespace tandem::apps

// tandem: one name for all programs, in the manner of git: `tandem train` is `cifar_train`.
#include "commands.h"

#include "apps/arguments/program.h"
#include "tandem/core/error.h"
#include "tandem/train/process_info.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

namespace {

using namespace tandem;

/// Becomes the command's program, whose name for its user is that of the command. Throws Error where that cannot be.
/// `self` is this one's as it was called, which a command line that is kept begins with.
[[noreturn]] void become(const std::string& self, const apps::Command& command,
                         const std::vector<std::string>& arguments) {
  const std::string program = apps::find_program(command);
  std::vector<std::string> words{fmt::format("{} {}", self, command.name)};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  execv(program.c_str(), pointers.data());
  fail("tandem {}: cannot run {}: {}", command.name, program, std::strerror(errno));
}

int run(const std::string& self, const std::vector<std::string>& words) {
  const std::string name = words.empty() ? "help" : words.front();
  const std::vector<std::string> rest(words.empty() ? words.end() : words.begin() + 1, words.end());
  if (name == "--complete") {
    for (const std::string& word : apps::complete(rest)) fmt::print("{}\n", word);
  } else if (name == "--version") {
    fmt::print("tandem (Tandem) {}\n", train::build_versions().front().second);
  } else if ((name == "help" || name == "--help" || name == "-h") && rest.empty()) {
    fmt::print("{}", apps::help_page());
  } else if (name == "help" && (rest.front() == "completion" || rest.front() == "help")) {
    fmt::print("{}", apps::help_page());  // which tells of them
  } else if (name == "help") {
    become(self, apps::find_command(rest.front()), {"--help"});
  } else if (name == "completion") {
    require(rest.size() == 1, "tandem completion: name one shell: bash, zsh or fish");
    fmt::print("{}", apps::completion_script(rest.front()));
  } else {
    require(!name.starts_with('-'), "unknown option {}: a command comes first; tandem help lists them", name);
    become(self, apps::find_command(name), rest);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  apps::hold_standard_streams();
  return apps::run_program([&] { return run(argc > 0 ? argv[0] : "tandem", {argv + std::min(argc, 1), argv + argc}); });
}

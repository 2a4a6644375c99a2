// Standard streams, and errors that nobody else has caught.
#include "apps/arguments/program.h"

#include "tandem/comm/launch/mpi_environment.h"
#include "tandem/kernels/notice.h"
#include "tandem/train/stderr_line.h"

#include <fmt/core.h>

#include <fcntl.h>
#include <unistd.h>
#include <cstdio>
#include <exception>
#include <iostream>
#include <string_view>

namespace tandem::apps {
namespace {

void show_notices() {
  kernels::listen_to_notices([](const std::string& line) { train::print_to_stderr("note: " + line); });
}

}  // namespace

std::string program_name(const char* const* argv) {
  const std::string_view path = argv[0] == nullptr ? "" : argv[0];
  return std::string(path.substr(path.rfind('/') + 1));  // npos + 1 is 0
}

std::vector<std::string> command_words(int argc, const char* const* argv) {
  std::vector<std::string> words(argv, argv + argc);
  if (words.empty()) return words;
  const std::string first = words.front();
  const std::size_t blank = first.rfind(' ');
  if (blank == first.npos || first.find('/', blank) != first.npos) return words;
  const std::string_view self = std::string_view(first).substr(0, blank);
  if (self.substr(self.rfind('/') + 1) != "tandem") return words;
  words.front() = self;
  words.insert(words.begin() + 1, first.substr(blank + 1));
  return words;
}

void hold_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(stream, F_GETFD) >= 0) continue;
    // Takes the lowest number that is free, which is this one. Standard output can then not be written, as before.
    static_cast<void>(::open("/dev/null", stream == STDERR_FILENO ? O_WRONLY : O_RDONLY));
  }
}

int checked_output(int code) {
  std::cout.flush();
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
  train::print_to_stderr("error: standard output cannot be written: it is closed, or the disk is full");
  return code == 0 ? 1 : code;
}

int run_ranks_program(const std::function<int(comm::MpiEnvironment&)>& body, const std::string& interface) {
  hold_standard_streams();
  show_notices();
  return comm::run_program([&](comm::MpiEnvironment& environment) { return checked_output(body(environment)); },
                           train::print_to_stderr, interface);
}

int run_program(const std::function<int()>& body) {
  hold_standard_streams();
  show_notices();
  try {
    return checked_output(body());
  } catch (const std::exception& error) {
    if (std::ferror(stdout) != 0) return checked_output(1);
    train::print_to_stderr(fmt::format("error: {}", error.what()));
    return 2;
  }
}

}  // namespace tandem::apps

// Standard streams, and errors that nobody else has caught.
#include "apps/arguments/program.h"

#include <fmt/core.h>

#include <fcntl.h>
#include <unistd.h>
#include <cstdio>
#include <exception>
#include <iostream>

namespace tandem::apps {

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
  fmt::print(stderr, "error: standard output cannot be written: it is closed, or the disk is full\n");
  return code == 0 ? 1 : code;
}

int run_program(const std::function<int()>& body) {
  hold_standard_streams();
  try {
    return checked_output(body());
  } catch (const std::exception& error) {
    if (std::ferror(stdout) != 0) return checked_output(1);
    fmt::print(stderr, "error: {}\n", error.what());
    return 2;
  }
}

}  // namespace tandem::apps

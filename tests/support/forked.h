// Code that is run in a process made by fork().
#pragma once

#ifdef __linux__
#include <sys/wait.h>
#include <unistd.h>

namespace tandem::test {

/// The exit code of a process made by fork() that calls `body` and ends with the number it returns, if it does not end
/// within it; -1 if it could not be made, was killed, or hung for 20 seconds.
template <typename Body>
int exit_code_forked(Body&& body) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    _exit(body());
  }
  int status = 0;
  return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace tandem::test
#endif

// What the system tells of processes, and what it does not.
#include "tandem/comm/doctor/process_state.h"

#include "tests/support/catch.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>

using namespace tandem::comm;

namespace {

/// While it is there, this process can open no more files.
class NoMoreFiles {
 public:
  NoMoreFiles() {
    getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit none{0, before_.rlim_max};
    setrlimit(RLIMIT_NOFILE, &none);
  }
  ~NoMoreFiles() { setrlimit(RLIMIT_NOFILE, &before_); }
  NoMoreFiles(const NoMoreFiles&) = delete;
  NoMoreFiles& operator=(const NoMoreFiles&) = delete;

 private:
  rlimit before_{};
};

}  // namespace

TEST_CASE("a process is stopped, goes on and ends") {
  const pid_t child = fork();
  if (child == 0) {
    while (true) pause();
  }
  const std::int64_t start = start_of_process(child);
  CHECK(start > 0);
  int status = 0;
  kill(child, SIGSTOP);
  waitpid(child, &status, WUNTRACED);
  CHECK(state_of_process(child, start) == ProcessState::stopped);
  CHECK(state_of_process(child, start + 1) == ProcessState::ended);  // another one of that number
  kill(child, SIGKILL);
  waitpid(child, &status, 0);
  CHECK(state_of_process(child, start) == ProcessState::ended);
}

TEST_CASE("of a process that cannot be looked at nobody says that it has ended") {
  const std::int64_t self = getpid(), start = start_of_process(self);
  ProcessState state{};
  {
    const NoMoreFiles none_left;
    state = state_of_process(self, start);
  }
  CHECK(state == ProcessState::unknown);
  CHECK(state_of_process(self, start) == ProcessState::runs);
}

// Signals that ask a run to end.
#include "tandem/train/stop_signals.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"
#include "tests/support/forked.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <optional>

using namespace tandem;
using namespace tandem::test;
using train::StopSignals;

TEST_CASE("the first signal is noted, and what it did before comes back") {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    CHECK(exit_code_forked([&] {
            std::signal(signal, [](int) { ::_exit(9); });
            {
              const StopSignals signals;
              if (signals.requested() != 0) return 1;
              std::raise(signal);
              if (signals.requested() != signal) return 2;
            }
            const bool is_forgotten = StopSignals().requested() == 0;
            if (!is_forgotten) return 3;
            std::raise(signal);
            return 4;
          }) == 9);
  }
}

TEST_CASE("a signal that is ignored, as under nohup, stays so") {
  CHECK(exit_code_forked([] {
          std::signal(SIGHUP, SIG_IGN);
          const StopSignals signals;
          std::raise(SIGHUP);
          return signals.requested();
        }) == 0);
}

TEST_CASE("a second signal, not just behind the first, ends the process at once") {
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    ::alarm(20);
    const StopSignals signals;
    std::raise(SIGINT);
    std::raise(SIGTERM);  // of the same request
    if (signals.requested() != SIGINT) ::_exit(1);
    ::usleep(600'000);
    std::raise(SIGTERM);
    ::_exit(0);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == SIGTERM);
}

TEST_CASE("there is one of them in a process") {
  std::optional<StopSignals> first;
  first.emplace();
  CHECK_THAT(error_of([] { StopSignals(); }), ContainsText("StopSignals: there is one in this process already"));
  first.reset();
  CHECK(StopSignals().requested() == 0);
}

// Catch2's own code, compiled once for all test programs.
#define CATCH_CONFIG_RUNNER
#include "tests/support/session.h"

#include "tests/support/catch.h"
#include "tests/support/skip.h"

#include <cstdio>

namespace tandem::test {

namespace {

// Test cases of this program, so far.
int finished = 0, skipped = 0;
bool current_is_skipped = false;

#if __has_include(<catch2/catch_all.hpp>)
using Listener = Catch::EventListenerBase;
#else
using Listener = Catch::TestEventListenerBase;
#endif

class SkipCounter : public Listener {
 public:
  using Listener::Listener;
  void testCaseStarting(const Catch::TestCaseInfo&) override { current_is_skipped = false; }
  void testCaseEnded(const Catch::TestCaseStats&) override {
    ++finished;
    if (current_is_skipped) ++skipped;
  }
};

}  // namespace

CATCH_REGISTER_LISTENER(SkipCounter)

void skip_test(const std::string& reason) {
  current_is_skipped = true;
  WARN("skipped: " + reason);
}

bool runs_unless(const std::string& reason) {
  if (!reason.empty()) skip_test(reason);
  return reason.empty();
}

int run_session(int argc, char** argv, int abort_after) {
  Catch::Session session;
  const int usage_error = session.applyCommandLine(argc, argv);
  if (usage_error != 0) return usage_error;
  if (abort_after > 0) session.configData().abortAfter = abort_after;
  // Not Catch2's own codes: version 2 gives the number of failures, which may be kSkippedExitCode, and 3 always 42.
  const bool failed = session.run() != 0;
  if (skipped > 0) std::printf("skipped: %d of %d test cases\n", skipped, finished);
  if (failed) return 1;
  return skipped > 0 && skipped == finished ? kSkippedExitCode : 0;
}

}  // namespace tandem::test

// Catch2's own code, compiled once for all test programs.
#define CATCH_CONFIG_RUNNER
#include "tests/support/session.h"

#include "tests/support/catch.h"

namespace tandem::test {

int run_session(int argc, char** argv, int abort_after) {
  Catch::Session session;
  const int usage_error = session.applyCommandLine(argc, argv);
  if (usage_error != 0) return usage_error;
  if (abort_after > 0) session.configData().abortAfter = abort_after;
  return session.run();
}

}  // namespace tandem::test

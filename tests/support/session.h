// Runs the tests that are linked into a program.
#pragma once

namespace tandem::test {

/// What a test program's main returns: 0 where all is well, kSkippedExitCode (tests/support/skip.h) where every test
/// case was skipped, 1 where one failed, another code where the arguments are wrong. With `abort_after`, the run ends
/// after as many failures.
int run_session(int argc, char** argv, int abort_after = -1);

}  // namespace tandem::test

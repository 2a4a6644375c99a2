// Test cases that cannot run here, and say so.
#pragma once

#include <string>

namespace tandem::test {

/// What a test program returns where every test case that it ran was skipped: ctest then counts a skipped test.
inline constexpr int kSkippedExitCode = 77;

/// Counts the test case that is running as skipped, and prints why. Return from the test case after it.
void skip_test(const std::string& reason);

/// True where `reason` is empty; else the test case that is running is skipped for this reason.
bool runs_unless(const std::string& reason);

}  // namespace tandem::test

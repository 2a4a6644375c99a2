// A program for skip_cases.cmake: test cases that are skipped, pass and fail.
#include "tests/support/catch.h"
#include "tests/support/skip.h"

using namespace tandem::test;

TEST_CASE("skipped", "[skipped]") { return skip_test("on purpose"); }
TEST_CASE("skipped after a check", "[skipped]") {
  CHECK(true);
  if (!runs_unless("on purpose")) return;
  CHECK(false);
}
TEST_CASE("passes", "[passes]") { CHECK(runs_unless("")); }
TEST_CASE("fails", "[fails]") { CHECK(false); }
TEST_CASE("skipped after a failure", "[fails_and_skips]") {
  CHECK(false);
  skip_test("on purpose");
}
TEST_CASE("fails as often as the exit code of skipped tests says", "[fails_77_times]") {
  for (int i = 0; i < kSkippedExitCode; ++i) CHECK(false);
}

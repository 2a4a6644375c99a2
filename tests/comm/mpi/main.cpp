// Entry point of the tests that run as several ranks. Each rank runs all tests; the first failure on any rank ends all.
#include "tests/comm/mpi/mpi_test.h"
#include "tests/support/session.h"
#include "tests/support/skip.h"

namespace tandem::test {

namespace {
comm::MpiEnvironment* the_environment = nullptr;
}

comm::MpiEnvironment& environment() { return *the_environment; }

}  // namespace tandem::test

int main(int argc, char** argv) {
  return tandem::comm::run_program([&](tandem::comm::MpiEnvironment& environment) {
    tandem::test::the_environment = &environment;
    // A rank that failed is out of step with the others, which would wait for it.
    const int failures = tandem::test::run_session(argc, argv, 1);
    if (failures != 0 && failures != tandem::test::kSkippedExitCode) environment.abort(1);
    return failures;
  });
}

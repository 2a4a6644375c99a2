// Entry point of the tests that run as several ranks. Each rank runs all tests; the first failure on any rank ends all.
#define CATCH_CONFIG_RUNNER
#include "tests/comm/mpi/mpi_test.h"

namespace tandem::test {

namespace {
comm::MpiEnvironment* the_environment = nullptr;
}

comm::MpiEnvironment& environment() { return *the_environment; }

}  // namespace tandem::test

int main(int argc, char** argv) {
  return tandem::comm::run_program([&](tandem::comm::MpiEnvironment& environment) {
    tandem::test::the_environment = &environment;
    Catch::Session session;
    const int usage_error = session.applyCommandLine(argc, argv);
    if (usage_error != 0) return usage_error;
    // A rank that failed is out of step with the others, which would wait for it.
    session.configData().abortAfter = 1;
    const int failures = session.run();
    if (failures != 0) environment.abort(1);
    return 0;
  });
}

// What is said of failed calls of other libraries.
#include "tandem/core/failed_call.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"

using namespace tandem;
using namespace tandem::test;

TEST_CASE("a failed call is told with the library, its words, the function and the place") {
  const SourceLine where("/somewhere/all_reduce.cpp", 80);
  const std::string place = "all_reduce.cpp:80";
  CHECK(error_of([&] { fail_call({"NCCL", "invalid usage", "ncclSend(x, f(1), 2)", where, "ask it"}); }) ==
        "NCCL: invalid usage from ncclSend at " + place + "; ask it");
  CHECK(error_of([&] { fail_call({"MPI", "no memory", "MPI_Barrier", where}); }) ==
        "MPI: no memory from MPI_Barrier at " + place);
}

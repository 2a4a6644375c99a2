// Which build of the kernels was loaded.
#include "tandem/kernels/instruction_set.h"
#include "tests/support/catch.h"

#include <cstdlib>

using namespace tandem;

// Run with this variable by instruction_set_cases.cmake, where there is more than one build of the library.
TEST_CASE("the kernels that were loaded are those for the processor's instructions") {
  const std::string_view loaded = kernels::instruction_set();
  CHECK((loaded == "AVX-512" || loaded == "AVX2" || loaded == "baseline"));
  if (const char* const expected = std::getenv("TANDEM_EXPECTED_INSTRUCTION_SET")) CHECK(loaded == expected);
}

// Numbers as people read them.
#include "tandem/core/number_text.h"

#include "tests/support/catch.h"

using tandem::with_separators;

TEST_CASE("thousands are set apart by commas") {
  CHECK(with_separators(0) == "0");
  CHECK(with_separators(999) == "999");
  CHECK(with_separators(1000) == "1,000");
  CHECK(with_separators(1234567) == "1,234,567");
  CHECK(with_separators(-1000) == "-1,000");
  CHECK(with_separators(-100) == "-100");
}

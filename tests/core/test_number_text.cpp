// Numbers as people read and write them.
#include "tandem/core/number_text.h"

#include "tests/support/catch.h"

#include <optional>

using tandem::parse_number;
using tandem::with_separators;

TEST_CASE("thousands are set apart by commas") {
  CHECK(with_separators(0) == "0");
  CHECK(with_separators(999) == "999");
  CHECK(with_separators(1000) == "1,000");
  CHECK(with_separators(1234567) == "1,234,567");
  CHECK(with_separators(-1000) == "-1,000");
  CHECK(with_separators(-100) == "-100");
}

TEST_CASE("a number is the whole of a text, or none") {
  CHECK(parse_number<int>("0") == 0);
  CHECK(parse_number<int>("-12") == -12);
  CHECK(parse_number<int>("2147483647") == 2147483647);
  CHECK(parse_number<double>("2.5e3") == 2500.0);
  for (const char* text : {"", " 1", "1 ", "+1", "1x", "x", "1.5", "2147483648", "0x10"})
    CHECK(parse_number<int>(text) == std::nullopt);
  CHECK(parse_number<unsigned>("-1") == std::nullopt);
}

// Lines that a file keeps, such as what users read of errors.
#pragma once

#include "tests/support/catch.h"

#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

namespace tandem::test {

/// Holds the lines against those of a file of this tree, "tests/errors/data.txt". With TANDEM_RECORD_ERRORS=1 in the
/// environment the file is written first: read its difference before it is committed.
inline void check_recorded(const std::string& file, const std::vector<std::string>& lines) {
  const std::string path = TANDEM_SOURCE_DIR "/" + file;
  if (std::getenv("TANDEM_RECORD_ERRORS") != nullptr) {
    std::ofstream written(path);
    for (const std::string& line : lines) written << line << '\n';
  }
  INFO("in " << path << "; TANDEM_RECORD_ERRORS=1 records them anew");
  std::ifstream recorded(path);
  std::string expected;
  for (const std::string& line : lines) {
    CHECK(line.find('\n') == std::string::npos);
    expected.clear();
    std::getline(recorded, expected);
    REQUIRE(line == expected);
  }
  CHECK_FALSE(std::getline(recorded, expected));
}

}  // namespace tandem::test

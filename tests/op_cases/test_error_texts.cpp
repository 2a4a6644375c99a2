// The whole text of the error of each bad input, as bad_inputs.txt has it: what a user reads.
#include "tests/op_cases/op_case.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"

#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>

using namespace tandem;
using namespace tandem::test;

namespace {

const std::string kRecorded = TANDEM_SOURCE_DIR "/tests/op_cases/bad_inputs.txt";

/// "op, what: text", a line each, as the op table has them. Ops are sorted, as their order is the linker's.
std::map<std::string, std::vector<std::string>> error_lines() {
  std::map<std::string, std::vector<std::string>> lines;
  for (const OpCase& op : op_table())
    for (const BadInput& bad : op.bad_inputs)
      lines[op.name].push_back(fmt::format("{}, {}: {}", op.name, bad.what, error_of(bad.call)));
  return lines;
}

}  // namespace

// TANDEM_RECORD_ERRORS=1 writes the file anew: read its difference before it is committed.
TEST_CASE("errors of bad inputs read as recorded", "[errors]") {
  std::ostringstream all;
  for (const auto& [op, lines] : error_lines())
    for (const std::string& line : lines) all << line << '\n';
  if (std::getenv("TANDEM_RECORD_ERRORS") != nullptr) std::ofstream(kRecorded) << all.str();
  std::ifstream file(kRecorded);
  INFO("in " << kRecorded << "; TANDEM_RECORD_ERRORS=1 records them anew");
  std::istringstream actual(all.str());
  for (std::string line, recorded; std::getline(actual, line);) {
    std::getline(file, recorded);
    REQUIRE(line == recorded);
  }
  std::string more;
  CHECK_FALSE(std::getline(file, more));
}

// The whole text of the error of each bad input, as bad_inputs.txt has it: what a user reads.
#include "tests/op_cases/op_case.h"
#include "tests/support/error_of.h"
#include "tests/support/recorded_lines.h"

#include <map>

using namespace tandem;
using namespace tandem::test;

// Ops are sorted, as their order in the table is the linker's.
TEST_CASE("errors of bad inputs read as recorded", "[errors]") {
  std::map<std::string, std::vector<std::string>> of_ops;
  for (const OpCase& op : op_table())
    for (const BadInput& bad : op.bad_inputs)
      of_ops[op.name].push_back(fmt::format("{}, {}: {}", op.name, bad.what, error_of(bad.call)));
  std::vector<std::string> lines;
  for (const auto& [op, own] : of_ops) lines.insert(lines.end(), own.begin(), own.end());
  check_recorded("tests/op_cases/bad_inputs.txt", lines);
}

// Messages of ranks that compare what they do, on each backend.
#include "tests/comm/message_checks.h"

#include "tests/comm/collective_checks.h"
#include "tests/comm/mpi/mpi_test.h"

using namespace tandem;
using namespace tandem::comm;
using namespace tandem::test;

namespace {

/// Such a group, by Catch2's generator.
std::unique_ptr<ProcessGroup> each_checking_group() {
  std::vector<GroupOptions> options;
  for (const std::string_view name : mpi_backends()) {
    if (name == "auto") continue;
    options.push_back({.backend = std::string(name), .progress = "auto", .timeout = 20.0, .checks = true});
  }
  options.push_back({.backend = "native", .algorithm = "ring", .progress = "poll", .timeout = 20.0, .checks = true});
  options.push_back({.backend = "native", .algorithm = "ring", .progress = "thread", .timeout = 20.0, .checks = true});
  const GroupOptions choice = GENERATE_COPY(from_range(options));
  return make_process_group(choice, environment());
}

}  // namespace

TEST_CASE("ranks that compare what they do send and receive what fits") {
  const auto group = each_checking_group();
  CAPTURE(group->name());
  if (group->size() > 1) CHECK(fault_of_equal_messages(*group) == "");
  for (const std::int64_t count : {0, 1, 1000}) CHECK(fault_of_all_collectives(*group, count) == "");
}

TEST_CASE("both ranks of a message that does not fit say so, and nothing is sent") {
  const auto group = each_checking_group();
  CAPTURE(group->name());
  if (group->size() > 1) CHECK(fault_of_unequal_messages(*group) == "");
}

TEST_CASE("groups that are split off compare messages by the ranks that they have there") {
  const auto whole = each_checking_group();
  CAPTURE(whole->name());
  const auto group = whole->split(whole->rank() == 0 ? 0 : 1, -whole->rank());  // ranks in the other order
  if (group->size() > 1) CHECK(fault_of_unequal_messages(*group) == "");
}

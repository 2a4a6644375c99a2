// Ranks and GPUs of hosts that show them in several ways.
#include "tandem/comm/backends/backend.h"
#include "tandem/comm/launch/gpu_sharing.h"
#include "tests/support/catch.h"

#include <set>

using namespace tandem;
using namespace tandem::comm;

namespace {

using Indices = std::vector<int>;

Indices shares(const std::vector<VisibleGpus>& ranks) { return share_out_gpus(ranks); }

}  // namespace

TEST_CASE("ranks that see the same GPUs take them in turn") {
  const std::vector<std::string> all{"A", "B", "C"};
  CHECK(shares({{0, all}}) == Indices{0});
  CHECK(shares({{0, all}, {0, all}, {0, all}}) == Indices{0, 1, 2});
  CHECK(shares({{0, all}, {0, all}, {0, all}, {0, all}}) == Indices{0, 1, 2, 0});
}

TEST_CASE("every host's GPUs are shared out by themselves") {
  const std::vector<std::string> first{"A", "B"}, second{"C", "D"};
  CHECK(shares({{0, first}, {1, second}, {0, first}, {1, second}}) == Indices{0, 0, 1, 1});
  CHECK(shares({{0, {"A"}}, {1, {"A"}}}) == Indices{0, 0});
}

TEST_CASE("a GPU that a launcher shows to one rank only is that rank's") {
  CHECK(shares({{0, {"A"}}, {0, {"B"}}}) == Indices{0, 0});
  CHECK(shares({{0, {"A", "B"}}, {0, {"A"}}}) == Indices{1, 0});
  CHECK(shares({{0, {"B"}}, {0, {"A", "B"}}, {0, {"A", "B", "C"}}}) == Indices{0, 0, 2});
}

TEST_CASE("the same GPUs in another order are told by their UUIDs") {
  CHECK(shares({{0, {"A", "B"}}, {0, {"B", "A"}}}) == Indices{0, 0});
  CHECK(shares({{0, {"A", "B", "C"}}, {0, {"B", "C", "A"}}, {0, {"C", "A", "B"}}}) == Indices{0, 1, 2});  // A, C and B
}

TEST_CASE("ranks without a GPU take none and leave the others theirs") {
  CHECK(shares({{0, {}}, {0, {"A", "B"}}, {0, {"A", "B"}}}) == Indices{-1, 1, 0});
  CHECK(shares({}).empty());
}

TEST_CASE("sharing out leaves the CPU alone") {
  ProcessGroup group(make_self_backend());
  CHECK(share_out_gpus(group, Device{}) == Device{});
}

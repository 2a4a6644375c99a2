// What is said of texts that differ between ranks.
#include "tandem/comm/agreement.h"
#include "tests/comm/twin_backend.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"

using namespace tandem;
using namespace tandem::comm;
using namespace tandem::test;

namespace {

/// What is said where rank 0 has `mine` and rank 1 `other`.
std::string difference(std::string_view mine, std::string other) {
  TwinEvents events;
  auto backend = std::make_unique<TwinBackend>(events);
  backend->let_other_differ(std::move(other));
  ProcessGroup group(std::move(backend));
  const std::string text = error_of([&] { check_same(group, "config", mine); });
  const std::string head = "config differs between ranks: ", tail = " (differing from rank 0: 1)";
  REQUIRE(text.starts_with(head));
  REQUIRE(text.ends_with(tail));
  return text.substr(head.size(), text.size() - head.size() - tail.size());
}

}  // namespace

TEST_CASE("texts that differ in a line name it") {
  CHECK(difference("lr=1\n", "lr=2\n") == "lr is 1 on rank 0 and 2 on rank 1");
  CHECK(difference("seed=1\nlr=1\n", "seed=1\n") == "lr is missing on rank 1");
  CHECK(difference("seed=1\n", "seed=1\nlr=1\n") == "lr is on rank 1 but not on rank 0");
  CHECK(difference("lr=1\n", "") == "lr is missing on rank 1");
  CHECK(difference("", "lr=1\n") == "lr is on rank 1 but not on rank 0");
}

TEST_CASE("texts that differ in newlines at their end, or in empty lines, say so") {
  CHECK(difference("lr=1\n", "lr=1") == "the newline at the end is missing on rank 1");
  CHECK(difference("lr=1", "lr=1\n") == "the newline at the end is on rank 1 but not on rank 0");
  CHECK(difference("lr=1\n\n", "lr=1\n") == "line 2, an empty one, is missing on rank 1");
  CHECK(difference("lr=1\n", "lr=1\n\n\n") == "line 2, an empty one, is on rank 1 but not on rank 0");
  CHECK(difference("", "\n") == "line 1, an empty one, is on rank 1 but not on rank 0");
  CHECK(difference("\n", "") == "line 1, an empty one, is missing on rank 1");
  CHECK(difference("a=1\n\nb=1\n", "a=1\nb=1\n") == "line 2 is empty on rank 0 and b=1 on rank 1");
  CHECK(difference("=1\n", "=2\n") == "line 1 is =1 on rank 0 and =2 on rank 1");
}

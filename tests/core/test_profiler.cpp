// Profiler ranges: counts, nesting, threads, and silence while off.
#include "tandem/core/profiler.h"
#include "tests/support/catch.h"

#include <memory>
#include <thread>

using namespace tandem;

namespace {

void wait() { std::this_thread::sleep_for(std::chrono::milliseconds(5)); }

ProfileEntry entry_of(const std::vector<ProfileEntry>& entries, const std::string& name) {
  for (const ProfileEntry& entry : entries) {
    if (entry.name == name) return entry;
  }
  return {};
}

}  // namespace

TEST_CASE("profile: counts ranges and tells own time from time inside") {
  start_profile();
  for (int i = 0; i < 3; ++i) {
    const ProfileRange outer("outer");
    wait();
    const ProfileRange inner([] { return std::string("inner"); });
    wait();
  }
  const auto entries = stop_profile();
  REQUIRE(entries.size() == 2);
  const ProfileEntry outer = entry_of(entries, "outer"), inner = entry_of(entries, "inner");
  CHECK(outer.count == 3);
  CHECK(inner.count == 3);
  CHECK(inner.seconds >= 0.015);
  CHECK(inner.self_seconds == inner.seconds);
  CHECK(outer.seconds >= 0.030);
  CHECK(outer.self_seconds == Approx(outer.seconds - inner.seconds));
}

TEST_CASE("profile: while off nothing is collected and no name is made") {
  int made = 0;
  const auto name = [&] { return ++made, std::string("unseen"); };
  {
    const ProfileRange range(name);
  }
  CHECK(made == 0);

  start_profile();
  CHECK(stop_profile().empty());
}

TEST_CASE("profile: each start begins anew, threads add up, a range may outlive its profile") {
  start_profile();
  {
    const ProfileRange range("old");
  }
  start_profile();
  std::thread other([] { const ProfileRange range("shared"); });
  other.join();
  {
    const ProfileRange range("shared");
  }
  auto late = std::make_unique<ProfileRange>("late");
  const auto entries = stop_profile();
  late.reset();
  REQUIRE(entries.size() == 1);
  CHECK(entry_of(entries, "shared").count == 2);
  start_profile();
  CHECK(stop_profile().empty());
}

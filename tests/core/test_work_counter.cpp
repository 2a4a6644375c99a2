// What counters of work count.
#include "tandem/core/timeline.h"
#include "tandem/core/work_counter.h"
#include "tests/support/catch.h"

#include <thread>

using namespace tandem;

TEST_CASE("counters count the work of their thread, inner ones included") {
  add_work(1.0, 0.0);  // nobody counts
  const WorkCounter outer;
  add_work(2.0, 8.0);
  {
    const WorkCounter inner;
    add_work(3.0, 0.0);
    std::thread([] {
      const WorkCounter elsewhere;
      add_work(100.0, 0.0);
      CHECK(elsewhere.flops() == 100.0);
    }).join();
    CHECK(inner.flops() == 3.0);
  }
  CHECK(work_is_counted());
  add_work(4.0, 0.0);
  CHECK(outer.flops() == 9.0);
}

TEST_CASE("work is told to a timeline and to counters at once") {
  start_timeline();
  {
    const WorkCounter counter;
    const ProfileRange range("product");
    add_work(5.0, 7.0);
    CHECK(counter.flops() == 5.0);
  }
  CHECK(work_is_counted());
  const Timeline timeline = stop_timeline();
  CHECK_FALSE(work_is_counted());
  REQUIRE(timeline.events.size() == 1);
  CHECK(timeline.events[0].flops == 5.0);
  CHECK(timeline.events[0].bytes == 7.0);
}

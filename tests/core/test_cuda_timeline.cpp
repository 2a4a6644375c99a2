// The timeline of a GPU: ranges by its own clock.
#include "tandem/core/tensor.h"
#include "tandem/core/timeline.h"
#include "tests/support/catch.h"
#include "tests/support/cuda_device.h"

#include <algorithm>

using namespace tandem;
using namespace tandem::test;

namespace {

const TimelineEvent& event_of(const std::vector<TimelineEvent>& events, std::string_view name) {
  const auto found = std::ranges::find(events, name, &TimelineEvent::name);
  REQUIRE(found != events.end());
  return *found;
}

Timeline start_and_stop_on_cpu() {
  start_timeline();
  {
    const ProfileRange range("of the host");
  }
  return stop_timeline();
}

}  // namespace

TEST_CASE("timeline: ranges have the times of a GPU's streams, which nest", "[cuda]") {
  if (!has_gpu()) return;
  const Tensor filled = Tensor::empty({1 << 16}, {.device = kGpu});
  synchronize(kGpu);
  start_timeline(kGpu);
  {
    const ProfileRange outer("outer");
    {
      const ProfileRange inner("inner");
      add_work(3.0, 5.0);
      filled.fill(1.0);
    }
    const ProfileRange nothing("nothing");
  }
  {
    const StreamScope scope{Stream(kGpu)};
    const ProfileRange other("other");
    const Tensor there = Tensor::full({1 << 16}, 2.0, {.device = kGpu});
  }
  const Timeline timeline = stop_timeline();
  REQUIRE(timeline.events.size() == 4);
  REQUIRE(timeline.device_events.size() == 4);
  const TimelineEvent& outer = event_of(timeline.device_events, "outer");
  const TimelineEvent& inner = event_of(timeline.device_events, "inner");
  const TimelineEvent& nothing = event_of(timeline.device_events, "nothing");
  CHECK((inner.flops == 3.0 && inner.bytes == 5.0));
  CHECK(inner.thread == outer.thread);
  CHECK(event_of(timeline.device_events, "other").thread != outer.thread);
  CHECK(inner.duration_ns > 0);
  CHECK(inner.duration_ns <= outer.duration_ns);
  CHECK(inner.begin_ns >= outer.begin_ns);
  CHECK(nothing.duration_ns < outer.duration_ns);
  // Both clocks began together: nothing is done on the GPU before the host asks for it. Events tell half a microsecond.
  CHECK(outer.begin_ns >= event_of(timeline.events, "outer").begin_ns - 1'000'000);
  CHECK(start_and_stop_on_cpu().device_events.empty());
}

TEST_CASE("timeline: memory of a GPU is that of the GPU", "[cuda]") {
  if (!has_gpu()) return;
  start_timeline(kGpu);
  const Tensor here = Tensor::zeros({5000});
  const Tensor there = Tensor::zeros({1000}, {.device = kGpu});
  const Timeline timeline = stop_timeline();
  REQUIRE(timeline.largest_at_peak.size() == 1);
  CHECK(timeline.largest_at_peak[0].shape == "f32[1000]");
}

// The timeline of a GPU: ranges by its own clock.
#include "tandem/core/tensor.h"
#include "tandem/core/timeline.h"
#include "tests/core/fake_cupti/stand_in.h"
#include "tests/support/catch.h"
#include "tests/support/cuda_device.h"

#include <dlfcn.h>

#include <algorithm>
#include <optional>

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
  const CuptiScope scope_of_library("/none/libcupti.so.13");
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
  CHECK(timeline.device_activities.empty());
  CHECK_THAT(timeline.device_times_from,
             ContainsText("CUDA events around each range, not from CUPTI: CUPTI 12.0 or newer was not found (/none/"));
  const Timeline on_cpu = start_and_stop_on_cpu();
  CHECK(on_cpu.device_events.empty());
  CHECK(on_cpu.device_times_from.empty());
}

TEST_CASE("timeline: CUPTI tells what the GPU did for each range", "[cuda]") {
  if (!has_gpu()) return;
  const CuptiScope scope(FAKE_CUPTI);
  const StandIn stand_in;
  std::optional<ProfileRange> early(std::in_place, "early");
  start_timeline(kGpu);
  stand_in.enqueue(kernel_record("_Z3outv"), 0, 1);
  {
    const ProfileRange outer("outer");
    {
      const ProfileRange inner("inner");
      add_work(3.0, 5.0);
      stand_in.enqueue(kernel_record("_Z3onev"), 10, 15);
      stand_in.enqueue(copy_record(8, 64), 20, 21);
    }
    const ProfileRange nothing("nothing");
    stand_in.enqueue(kernel_record("_Z3twov", 8), 30, 40);
  }
  early.reset();
  std::optional<ProfileRange> late(std::in_place, "late");
  stand_in.enqueue(kernel_record("_Z5afterv"), 50, 51);
  const Timeline timeline = stop_timeline();
  late.reset();
  CHECK((stand_in->pushed == 4 && stand_in->popped == 4));
  CHECK(stand_in->enabled.empty());
  CHECK_THAT(timeline.device_times_from, ContainsText("CUPTI 13.0.1 ("));
  CHECK_THAT(timeline.device_times_from, ContainsText("; clocks agree within"));

  std::vector<std::pair<std::string, std::string>> names;
  for (const DeviceActivity& activity : timeline.device_activities) names.emplace_back(activity.name, activity.op);
  CHECK(names == std::vector<std::pair<std::string, std::string>>{{"out()", ""},
                                                                  {"one()", "inner"},
                                                                  {"copy within the device", "inner"},
                                                                  {"two()", "nothing"},
                                                                  {"after()", "late"}});
  REQUIRE(timeline.events.size() == 3);
  REQUIRE(timeline.device_events.size() == 4);  // of "outer" on both streams
  const TimelineEvent& inner = event_of(timeline.device_events, "inner");
  CHECK((inner.duration_ns > 10'000 && inner.flops == 3.0 && inner.bytes == 5.0));
  CHECK(event_of(timeline.device_events, "outer").begin_ns == inner.begin_ns);
  CHECK(event_of(timeline.device_events, "nothing").thread != inner.thread);
  const TimelineEvent& on_host = event_of(timeline.events, "inner");
  CHECK(inner.begin_ns >= on_host.begin_ns - 1'000'000);
  CHECK(inner.begin_ns <= on_host.begin_ns + on_host.duration_ns + 1'000'000);
}

TEST_CASE("timeline: where CUPTI refuses, CUDA events tell the times, and the reason is told", "[cuda]") {
  if (!has_gpu()) return;
  const CuptiScope scope(FAKE_CUPTI);
  const StandIn stand_in;
  stand_in->refused_kind = 10;
  stand_in->enable_result = 35;
  start_timeline(kGpu);
  {
    const ProfileRange range("range");
  }
  Timeline timeline = stop_timeline();
  CHECK(timeline.device_events.size() == 1);
  CHECK(stand_in->pushed == 0);
  CHECK(timeline.device_times_from ==
        "CUDA events around each range, not from CUPTI: cuptiActivityEnable: CUPTI_ERROR_INSUFFICIENT_PRIVILEGES (35)");

  stand_in->refused_kind = 0;
  start_timeline(kGpu);
  stand_in->flush_result = 35;
  timeline = stop_timeline();
  CHECK_THAT(timeline.device_times_from,
             ContainsText("cuptiActivityFlushAll: CUPTI_ERROR_INSUFFICIENT_PRIVILEGES (35)"));
  CHECK(stand_in->enabled.empty());
}

TEST_CASE("timeline: CUPTI is loaded by the first timeline of a GPU, and by nothing before it", "[cuda]") {
  if (!has_gpu()) return;
  const CuptiScope scope(FAKE_CUPTI_SELDOM);
  const auto is_loaded = [] { return dlopen(FAKE_CUPTI_SELDOM, RTLD_NOW | RTLD_NOLOAD) != nullptr; };
  start_profile();
  {
    const ProfileRange range("range");
    const Tensor there = Tensor::full({1 << 10}, 2.0, {.device = kGpu});
  }
  stop_profile();
  start_and_stop_on_cpu();
  CHECK_FALSE(is_loaded());
  start_timeline(kGpu);
  stop_timeline();
  CHECK(is_loaded());
}

TEST_CASE("timeline: the CUPTI of this machine tells of kernels and copies", "[cuda]") {
  if (!has_gpu()) return;
  start_timeline(kGpu);
  Tensor there;
  {
    const ProfileRange range("range");
    there = Tensor::full({1 << 20}, 2.0, {.device = kGpu});
    there.to(Device{});
  }
  const Timeline timeline = stop_timeline();
  if (!timeline.device_times_from.starts_with("CUPTI")) return skip_test(timeline.device_times_from);
  const TimelineEvent& range = event_of(timeline.events, "range");
  std::size_t kernels = 0;
  std::int64_t copied = 0;
  for (const DeviceActivity& activity : timeline.device_activities) {
    INFO(activity.name);
    CHECK(activity.op == "range");
    CHECK(activity.begin_ns >= range.begin_ns - 1'000'000);
    CHECK(activity.begin_ns + activity.duration_ns <= range.begin_ns + range.duration_ns + 1'000'000);
    if (activity.kind == ActivityKind::copy) copied += activity.bytes;
    if (activity.kind != ActivityKind::kernel) continue;
    ++kernels;
    CHECK((activity.block[0] > 0 && activity.registers > 0));
  }
  CHECK(kernels >= 1);
  CHECK(copied == there.numel() * 4);
  CHECK(event_of(timeline.device_events, "range").duration_ns > 0);
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

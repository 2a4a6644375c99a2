// The timeline of profiler ranges, and of memory.
#include "tandem/core/tensor.h"
#include "tandem/core/timeline.h"
#include "tests/support/catch.h"

#include <algorithm>
#include <thread>

using namespace tandem;

namespace {

const TimelineEvent& event_of(const Timeline& timeline, std::string_view name) {
  const auto found = std::ranges::find(timeline.events, name, &TimelineEvent::name);
  REQUIRE(found != timeline.events.end());
  return *found;
}

}  // namespace

TEST_CASE("timeline: ranges nest in time, threads have numbers, work belongs to the innermost range") {
  CHECK_FALSE(timeline_is_recorded());
  add_work(1.0, 1.0);  // nobody listens
  start_timeline();
  {
    const ProfileRange outer("outer");
    add_work(3.0, 5.0);
    {
      const ProfileRange inner([] { return std::string("inner"); });
      add_work(2.0, 4.0);
      add_work(2.0, 4.0);
    }
    add_work(4.0, 0.0);
    std::thread([] { const ProfileRange range("other"); }).join();
  }
  add_work(1.0, 1.0);  // outside of any range
  const Timeline timeline = stop_timeline();
  REQUIRE(timeline.events.size() == 3);
  const TimelineEvent &outer = event_of(timeline, "outer"), &inner = event_of(timeline, "inner");
  const TimelineEvent& other = event_of(timeline, "other");
  CHECK((outer.flops == 7.0 && outer.bytes == 5.0));
  CHECK((inner.flops == 4.0 && inner.bytes == 8.0));
  CHECK((other.flops == 0.0 && other.bytes == 0.0));
  CHECK(inner.begin_ns >= outer.begin_ns);
  CHECK(inner.begin_ns + inner.duration_ns <= other.begin_ns);
  CHECK(other.begin_ns + other.duration_ns <= outer.begin_ns + outer.duration_ns);
  CHECK(inner.thread == outer.thread);
  CHECK(other.thread != outer.thread);
  CHECK(timeline.memory.size() == 1);  // nothing changed
  CHECK(timeline.device_events.empty());
}

TEST_CASE("timeline: each start begins anew, and ranges that are open at either end are left out") {
  auto early = std::make_unique<ProfileRange>("early");
  start_timeline();
  early.reset();
  {
    const ProfileRange old("old");
  }
  start_timeline();
  auto late = std::make_unique<ProfileRange>("late");
  CHECK(stop_timeline().events.empty());
  late.reset();
  start_timeline();
  CHECK(stop_timeline().events.empty());
}

TEST_CASE("timeline: memory by kind at each change, and what was live at the peak") {
  const Tensor before = Tensor::zeros({1000});
  const auto base = memory_stats();
  start_timeline();
  Tensor kept;
  {
    const ProfileRange range("keeps");
    const MemoryTagScope tag(MemoryTag::workspace);
    kept = Tensor::zeros({2000});
  }
  {
    const ProfileRange range("drops");
    const Tensor dropped = Tensor::zeros({3000});
  }
  {
    const ProfileRange range("small");
    const Tensor small = Tensor::zeros({10});
  }
  const Timeline timeline = stop_timeline();
  const auto workspace = static_cast<std::size_t>(MemoryTag::workspace);
  const auto activations = static_cast<std::size_t>(MemoryTag::activations);
  // What lives within a range alone is seen as well: 12000 bytes of "drops" and 40 of "small".
  const std::vector<std::int64_t> expected{0, 12000, 0, 40, 0};
  REQUIRE(timeline.memory.size() == expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    INFO(i);
    const MemorySample& sample = timeline.memory[i];
    CHECK(sample.bytes[workspace] == base.current[workspace] + 8000);
    CHECK(sample.bytes[activations] == base.current[activations] + expected[i]);
    if (i > 0) CHECK(sample.time_ns >= timeline.memory[i - 1].time_ns);
  }
  CHECK(timeline.peak_bytes == base.current_total + 20000);
  REQUIRE(timeline.largest_at_peak.size() == 2);
  CHECK(timeline.largest_at_peak[0].bytes == 12000);
  CHECK(timeline.largest_at_peak[0].made_in == "drops");
  CHECK(timeline.largest_at_peak[0].shape == "f32[3000]");
  CHECK(timeline.largest_at_peak[0].name.empty());
  CHECK(timeline.largest_at_peak[0].tag == MemoryTag::activations);
  CHECK(timeline.largest_at_peak[1].bytes == 8000);
  CHECK(timeline.largest_at_peak[1].made_in == "keeps");
  CHECK(timeline.largest_at_peak[1].tag == MemoryTag::workspace);

  start_timeline();
  std::vector<Tensor> many;
  for (int i = 1; i <= 12; ++i) many.push_back(Tensor::zeros({100 * i}));
  const Timeline crowded = stop_timeline();
  REQUIRE(crowded.largest_at_peak.size() == 10);
  CHECK(crowded.largest_at_peak.front().bytes == 4800);
  CHECK(crowded.largest_at_peak.back().bytes == 1200);
}

TEST_CASE("timeline: storages have the names of their tensors, also those that were there before") {
  const Tensor weight = Tensor::zeros({500, 10}), bucket = Tensor::zeros({4000});
  name_storages({{"unheard", weight}});  // nothing is recorded
  start_timeline();
  name_storages({{"weight", weight}, {"undefined", Tensor()}});
  const Tensor other = Tensor::zeros({3000});  // the peak
  {
    const Tensor in_place = other;
    name_storages({{"weight.grad", bucket.narrow(0, 0, 1000)}, {"bias.grad", bucket.narrow(0, 1000, 1000)}});
    name_storages({{"weight.grad.again", other}});  // after the fact
  }
  const Timeline timeline = stop_timeline();
  REQUIRE(timeline.largest_at_peak.size() == 3);
  CHECK(timeline.largest_at_peak[0].name == "weight");
  CHECK(timeline.largest_at_peak[0].shape == "f32[500, 10]");
  CHECK(timeline.largest_at_peak[0].bytes == 20000);
  CHECK(timeline.largest_at_peak[1].name == "weight.grad and 1 more");
  CHECK(timeline.largest_at_peak[1].bytes == 16000);
  CHECK(timeline.largest_at_peak[2].name == "weight.grad.again");
  CHECK(timeline.largest_at_peak[2].shape == "f32[3000]");
}

TEST_CASE("timeline: what is freed is not live at a later peak, and another one in its place has not its name") {
  start_timeline();
  for (int i = 0; i < 2; ++i) {
    const Tensor tensor = Tensor::zeros({1000 + i});  // of both the memory may be the same
    if (i == 0) name_storages({{"first", tensor}});
  }
  const Timeline timeline = stop_timeline();
  REQUIRE(timeline.largest_at_peak.size() == 1);
  CHECK(timeline.largest_at_peak[0].name.empty());
  CHECK(timeline.largest_at_peak[0].shape == "f32[1001]");
}

TEST_CASE("timeline: a range may take over what was told to the one around it") {
  start_timeline();
  {
    const ProfileRange outer("outer");
    add_work(1.0, 2.0);
    {
      ProfileRange inner("inner");
      inner.take_work_of_outer();
    }
    add_work(4.0, 8.0);
  }
  const Timeline timeline = stop_timeline();
  CHECK((event_of(timeline, "inner").flops == 1.0 && event_of(timeline, "inner").bytes == 2.0));
  CHECK((event_of(timeline, "outer").flops == 4.0 && event_of(timeline, "outer").bytes == 8.0));
}

TEST_CASE("timeline: threads that have one of their own record what they do, and no more") {
  Timeline mine, theirs;
  start_timeline();
  std::thread other([&] {
    const TimelineOfThread own;
    {
      const ProfileRange unseen("of another thread, before it records");
    }
    start_timeline();
    const Tensor kept = Tensor::zeros({1000});
    {
      const ProfileRange range("of another thread");
    }
    detail::add_to_timeline(CommunicationEvent{.name = "sum"});
    theirs = stop_timeline();
    {
      const ProfileRange unseen("of another thread, afterwards");
    }
  });
  other.join();
  CHECK(timeline_is_recorded());
  {
    const ProfileRange range("of this thread");
  }
  mine = stop_timeline();
  CHECK_FALSE(timeline_is_recorded());
  REQUIRE(theirs.events.size() == 1);
  CHECK(theirs.events[0].name == "of another thread");
  REQUIRE(theirs.communication.size() == 1);
  CHECK(theirs.communication[0].name == "sum");
  REQUIRE(theirs.largest_at_peak.size() == 1);
  CHECK(theirs.largest_at_peak[0].bytes == 4000);
  REQUIRE(mine.events.size() == 1);
  CHECK(mine.events[0].name == "of this thread");
  CHECK(mine.communication.empty());
}

TEST_CASE("timeline: an operation that another thread finishes is in the timeline of the one that began it") {
  start_timeline();
  Timeline theirs;
  std::thread other([&] {
    const TimelineOfThread own;
    start_timeline();
    const auto recording = detail::recording_of_thread();
    std::thread([&] { detail::add_to_timeline(recording, {.name = "sum"}); }).join();
    theirs = stop_timeline();
  });
  other.join();
  CHECK(theirs.communication.size() == 1);
  CHECK(stop_timeline().communication.empty());
}

TEST_CASE("timeline: one of a thread that ends while it records is not recorded any more") {
  std::thread([] {
    const TimelineOfThread own;
    start_timeline();
  }).join();
  CHECK_FALSE(timeline_is_recorded());
}

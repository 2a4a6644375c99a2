// Records of a GPU's work, from a library that pretends to be CUPTI.
#include "tandem/core/cupti/library.h"
#include "tandem/core/cupti/ranges.h"
#include "tandem/core/cupti/recorder.h"
#include "tests/core/fake_cupti/stand_in.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <string_view>
#include <thread>
#include <tuple>

using namespace tandem;
using namespace tandem::test;
using cupti::RecordKind;

namespace {

std::shared_ptr<const cupti::Library> load() {
  return std::make_shared<const cupti::Library>(std::vector<std::string>{FAKE_CUPTI});
}

const char* nothing_set(const char*) { return nullptr; }

const char* names_mine(const char* variable) {
  return std::string_view(variable) == "TANDEM_CUPTI_LIBRARY" ? "/mine/libcupti.so" : nullptr;
}

/// A millisecond of the clock lies between the activities of a test.
void let_time_pass() { std::this_thread::sleep_for(std::chrono::milliseconds(2)); }

}  // namespace

TEST_CASE("CUPTI: where it is looked for, and which versions are known") {
  const auto files = cupti::cupti_files(nothing_set, false);
  REQUIRE(files.size() >= 2);
  CHECK((files[0] == "libcupti.so.13" && files[1] == "libcupti.so.12"));
  CHECK(cupti::cupti_files(names_mine, false) == std::vector<std::string>{"/mine/libcupti.so"});
  CHECK(cupti::cupti_files(names_mine, true) == std::vector<std::string>{"/mine/libcupti.so"});
  CHECK_THAT(error_of([] { cupti::cupti_files(nothing_set, true); }), ContainsText("does not see simulated GPUs"));

  const auto version = [](const char* file) { return version_text(cupti::Library({file}).file.version()); };
  CHECK(version(FAKE_CUPTI) == "13.0.1");
  CHECK(version(FAKE_CUPTI_12) == "12.8.0");
  CHECK_THAT(error_of([] { cupti::Library({FAKE_CUPTI_TOO_OLD}); }),
             ContainsText("is CUPTI 11.0.0, but 12.0 is the least"));
  CHECK_THAT(error_of([] { cupti::Library({FAKE_CUPTI_TOO_NEW}); }),
             ContainsText("is CUPTI 14.1.0, but this program knows CUPTI 12 to 13 only"));
  CHECK_THAT(error_of([] { cupti::Library({FAKE_CUPTI_BARE}); }), ContainsText("it has no cuptiGetTimestamp"));
}

TEST_CASE("CUPTI: what it refuses is told in its words, and nothing stays enabled") {
  const StandIn stand_in;
  for (const RecordKind kind : {RecordKind::external_correlation, RecordKind::kernel, RecordKind::fill}) {
    stand_in->refused_kind = static_cast<std::uint32_t>(kind);
    stand_in->enable_result = 35;
    CHECK(error_of([] { cupti::Recorder{load()}; }) == "cuptiActivityEnable: CUPTI_ERROR_INSUFFICIENT_PRIVILEGES (35)");
    CHECK(stand_in->enabled.empty());
  }
  stand_in->enable_result = 999;
  CHECK(error_of([] { cupti::Recorder{load()}; }) == "cuptiActivityEnable: unknown error (999)");
  stand_in->refused_kind = 0;
  stand_in->timestamp_result = 35;
  CHECK_THAT(error_of([] { cupti::Recorder{load()}; }), ContainsText("cuptiGetTimestamp: CUPTI_ERROR"));
  CHECK(stand_in->enabled.empty());
  stand_in->timestamp_result = 0;
  {
    cupti::Recorder recorder(load());
    CHECK(stand_in->enabled == std::set<std::uint32_t>{1, 2, 4, 5, 10, 22, 39});
    stand_in->flush_result = 35;
    CHECK_THAT(error_of([&] { recorder.stop(); }), ContainsText("cuptiActivityFlushAll: CUPTI_ERROR"));
  }
  CHECK(stand_in->enabled.empty());
}

TEST_CASE("CUPTI: records of kernels, copies and fills are read, in the order of time, each with its range") {
  const StandIn stand_in;
  stand_in->records_of_a_buffer = GENERATE(1, 3, 1000);
  cupti::Recorder recorder(load());
  const cupti::Library& library = *recorder.library();
  const std::uint64_t start = stand_in.now();
  library.push_number(cupti::kOwnRanges, 5);
  cupti::KernelRecord kernel = kernel_record("_Z5scaleIfEvPT_i");
  kernel.device = 2;
  kernel.context = 1;
  kernel.grid[0] = 64;
  kernel.grid[1] = 2;
  kernel.grid[2] = 1;
  kernel.block[0] = 256;
  kernel.block[1] = kernel.block[2] = 1;
  kernel.registers_per_thread = 40;
  kernel.static_shared_memory = 1024;
  kernel.dynamic_shared_memory = 49152;
  stand_in.enqueue(kernel, 300, 340, start);
  library.push_number(cupti::kOwnRanges, 6);
  stand_in.enqueue(copy_record(1, 4096, 9), 100, 110, start);
  library.pop_number(cupti::kOwnRanges, nullptr);
  cupti::FillRecord fill{};
  fill.kind = RecordKind::fill;
  fill.bytes = 512;
  stand_in.enqueue(fill, 400, 405, start);
  library.pop_number(cupti::kOwnRanges, nullptr);
  cupti::DeviceCopyRecord between{};
  between.kind = RecordKind::copy_between_devices;
  between.copy_kind = 10;
  between.bytes = 77;
  stand_in.enqueue(between, 500, 501, start);
  stand_in.enqueue(kernel_record("plain_c_name"), 600, 600, start);
  let_time_pass();
  const cupti::Recording recording = recorder.stop();

  REQUIRE(recording.activities.size() == 5);
  const auto& [copy, scale, zero, peer, plain] =
      std::tie(recording.activities[0], recording.activities[1], recording.activities[2], recording.activities[3],
               recording.activities[4]);
  CHECK((copy.what.kind == ActivityKind::copy && copy.what.name == "copy host to device" && copy.what.bytes == 4096));
  CHECK((copy.range == 6 && copy.stream == 9));
  CHECK((scale.what.kind == ActivityKind::kernel && scale.what.name == "void scale<float>(float*, int)"));
  CHECK((scale.what.grid == std::array{64, 2, 1} && scale.what.block == std::array{256, 1, 1}));
  CHECK((scale.what.registers == 40 && scale.what.static_shared_bytes == 1024));
  CHECK(scale.what.dynamic_shared_bytes == 49152);
  CHECK((scale.device == 2 && scale.context == 1 && scale.stream == 7 && scale.range == 5));
  CHECK(scale.what.duration_ns == 40'000);
  CHECK((zero.what.kind == ActivityKind::fill && zero.what.name == "fill" && zero.what.bytes == 512));
  CHECK(zero.range == 5);
  CHECK((peer.what.name == "copy between devices" && peer.what.bytes == 77 && peer.range == 0));
  CHECK((plain.what.name == "plain_c_name" && plain.range == 0));
  CHECK_THAT(recording.notes, !ContainsText("dropped"));
  CHECK_THAT(recording.notes, !ContainsText("without times"));
}

TEST_CASE("CUPTI: times are those of the host's clock, also where the clocks do not run alike") {
  const StandIn stand_in;
  stand_in->clock_shift_ns = 1'234'567'890'123;
  stand_in->clock_rate = GENERATE(1.0, 1.01, 0.99);
  cupti::Recorder recorder(load());
  std::vector<std::pair<std::int64_t, std::int64_t>> between;  // what the host's clock said before and behind
  for (int i = 0; i < 3; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(40));
    const std::int64_t before = steady_now_ns();
    stand_in.enqueue(kernel_record("kernel"), 0, 1);
    between.emplace_back(before, steady_now_ns());
  }
  const cupti::Recording recording = recorder.stop();
  REQUIRE(recording.activities.size() == 3);
  // A hundredth of 40 ms would be 400 us.
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(recording.activities[i].what.begin_ns >= between[i].first - 100'000);
    CHECK(recording.activities[i].what.begin_ns <= between[i].second + 100'000);
  }
  CHECK_THAT(recording.notes, ContainsText("clocks agree within "));

  const cupti::ClockReading first{1000, 50, 1}, last{3000, 2450, 1};
  CHECK(cupti::host_time(1000, first, last) == 50);
  CHECK(cupti::host_time(2000, first, last) == 1250);
  CHECK(cupti::host_time(3000, first, last) == 2450);
  CHECK(cupti::host_time(1500, first, first) == 550);
}

TEST_CASE("CUPTI: the reading of clocks that is least disturbed counts") {
  const StandIn stand_in;
  stand_in->clock_shift_ns = -5'000;
  const cupti::ClockReading reading = cupti::read_clocks(stand_in.library());
  CHECK(reading.error_ns > 0);
  CHECK(std::abs(reading.host_ns - 5'000 - reading.cupti_ns) <= reading.error_ns);
}

TEST_CASE("CUPTI: what is lost is told") {
  const StandIn stand_in;
  cupti::Recorder recorder(load());
  stand_in->dropped = 3;
  stand_in->breaks_buffers = true;
  stand_in.enqueue(kernel_record("kept"), 1, 2);
  stand_in.add(kernel_record("never ended"));
  cupti::KernelRecord backwards = kernel_record("backwards");
  backwards.start = 2'000'000'000;
  backwards.end = 1'000'000'000;
  stand_in.add(backwards);
  cupti::KernelRecord early = kernel_record("before the start");
  early.start = 1'000;
  early.end = 2'000;
  stand_in.add(early);
  const cupti::Recording recording = recorder.stop();
  REQUIRE(recording.activities.size() == 1);
  CHECK(recording.activities[0].what.name == "kept");
  CHECK_THAT(recording.notes, ContainsText("; dropped records: 3 (profile fewer steps)"));
  CHECK_THAT(recording.notes, ContainsText("; kernels or copies without times, left out: 2"));
  CHECK_THAT(recording.notes, ContainsText("; buffers that could not be read to their ends: 1"));
}

TEST_CASE("CUPTI: memory for records has an end, and each recording begins with all of it") {
  const StandIn stand_in;
  for (int i = 0; i < 2; ++i) {
    cupti::Recorder recorder(load());
    stand_in->records_of_a_buffer = 1;
    for (int k = 0; k < 70; ++k) stand_in.enqueue(kernel_record("kernel"), k, k + 1);
    const cupti::Recording recording = recorder.stop();
    CHECK(recording.activities.size() == 64);
    CHECK_THAT(recording.notes, ContainsText("; dropped records: 6 "));
  }
}

TEST_CASE("CUPTI: a buffer may come back while CUPTI is asked for dropped records, as its locks are its own") {
  const StandIn stand_in;
  std::atomic<bool> has_come_back = false, came_back_at_once = false;
  std::thread other;
  {
    cupti::Recorder recorder(load());
    stand_in->as_it_counts = [&] {
      other = std::thread([&] {
        stand_in->complete_buffer(nullptr, 0, new std::uint8_t[64], 64, 0);
        has_come_back = true;
      });
      for (int i = 0; i < 2000 && !has_come_back; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      came_back_at_once = has_come_back.load();
    };
    CHECK(recorder.stop().activities.empty());
  }
  REQUIRE(other.joinable());
  other.join();
  CHECK(came_back_at_once);
  // One that comes when nothing is recorded is let go, and nobody is asked for more.
  stand_in->as_it_counts = [&] { came_back_at_once = false; };
  stand_in->complete_buffer(nullptr, 0, new std::uint8_t[64], 64, 0);
  CHECK(came_back_at_once);
}

TEST_CASE("CUPTI: activities belong to their ranges and all ranges around them, stream by stream") {
  const auto activity = [](std::uint64_t range, std::uint32_t stream, std::int64_t begin, std::int64_t length,
                           std::uint32_t device = 1) {
    cupti::Activity one;
    one.what.name = "kernel";
    one.what.begin_ns = begin;
    one.what.duration_ns = length;
    one.device = device;
    one.stream = stream;
    one.range = range;
    return one;
  };
  const cupti::NumberedRanges ranges{{4, {"step", 0, true}},
                                     {5, {"conv", 4, true, 8.0, 2.0, "features.7"}},
                                     {6, {"still open", 4, false}},
                                     {7, {"idle", 4, true}}};
  Timeline timeline;
  cupti::add_activities(
      timeline,
      {activity(5, 30, 10, 5), activity(5, 30, 20, 10), activity(6, 30, 40, 10), activity(5, 13, 12, 100),
       activity(0, 13, 200, 1), activity(99, 13, 300, 1), activity(5, 30, 0, 1000, 0)},
      ranges, 1);
  REQUIRE(timeline.device_activities.size() == 6);  // without the one of another GPU
  std::vector<std::string> ops;
  std::vector<int> streams;
  for (const DeviceActivity& one : timeline.device_activities) {
    ops.push_back(one.op);
    streams.push_back(one.stream);
  }
  CHECK(ops == std::vector<std::string>{"conv", "conv", "still open", "conv", "", ""});
  CHECK(streams == std::vector<int>{1, 1, 1, 0, 0, 0});
  REQUIRE(timeline.device_events.size() == 4);
  CHECK(std::ranges::count(timeline.device_events, "features.7", &TimelineEvent::module) ==
        std::ranges::count(timeline.device_events, "conv", &TimelineEvent::name));
  const auto has = [&](std::string_view name, int stream, std::int64_t begin, std::int64_t length) {
    return std::ranges::any_of(timeline.device_events, [&](const TimelineEvent& event) {
      return event.name == name && event.thread == stream && event.begin_ns == begin && event.duration_ns == length;
    });
  };
  CHECK(has("conv", 1, 10, 20));
  CHECK(has("conv", 0, 12, 100));
  CHECK(has("step", 1, 10, 40));
  CHECK(has("step", 0, 12, 100));
}

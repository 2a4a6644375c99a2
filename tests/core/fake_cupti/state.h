// What tests tell the library that pretends to be CUPTI, and what it notes for them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <vector>

namespace tandem::test {

struct FakeCuptiState {
  // Of its behaviour.
  std::uint32_t refused_kind = 0;  // of cuptiActivityEnable
  int enable_result = 0, flush_result = 0, timestamp_result = 0;
  std::int64_t clock_shift_ns = 0;  // its clock is steady_clock's time, times the rate, and this behind
  double clock_rate = 1.0;
  std::size_t records_of_a_buffer = 1000;
  std::size_t dropped = 0;
  bool breaks_buffers = false;  // each ends with something that is no record
  std::uint32_t correlation = 0;
  std::function<void()> as_it_counts = {};  // what goes on in other threads while it counts dropped records

  // What came.
  std::set<std::uint32_t> enabled;
  int pushed = 0, popped = 0;
  void (*complete_buffer)(void*, std::uint32_t, std::uint8_t*, std::size_t, std::size_t) = nullptr;
  std::vector<std::vector<std::uint8_t>> records;  // those that the next flush hands out
};

}  // namespace tandem::test

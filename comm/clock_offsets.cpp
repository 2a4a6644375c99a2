// Round trips, and times between them.
#include "tandem/comm/clock_offsets.h"

#include "tandem/core/out.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <limits>

namespace tandem::comm {

namespace {

constexpr int kRoundTrips = 16;

std::int64_t steady_ns() {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::vector<std::int64_t> received(ProcessGroup& group, int from, std::int64_t count) {
  const Tensor values = Tensor::zeros({count}, {.dtype = DType::i64});
  group.receive(Out(values), from, kMaxMessageTag);
  return values.to_vector<std::int64_t>();
}

void send(ProcessGroup& group, int to, const std::vector<std::int64_t>& values) {
  group.send(Tensor::from(values, {static_cast<std::int64_t>(values.size())}), to, kMaxMessageTag);
}

/// Rank 0's part: measures, and tells the other rank.
void compare_with(ProcessGroup& group, int rank, const ClockReading& now) {
  ClockOffset best{.uncertainty_ns = std::numeric_limits<std::int64_t>::max()};
  for (int trip = 0; trip < kRoundTrips; ++trip) {
    const std::int64_t begin = now();
    send(group, rank, {0});
    const std::int64_t theirs = received(group, rank, 1).front(), end = now();
    const std::int64_t half = (end - begin + 1) / 2;
    if (half < best.uncertainty_ns) best = {theirs, begin + half - theirs, half};
  }
  send(group, rank, {best.at_ns, best.offset_ns, best.uncertainty_ns});
}

/// The part of another rank.
ClockOffset answer(ProcessGroup& group, const ClockReading& now) {
  for (int trip = 0; trip < kRoundTrips; ++trip) {
    received(group, 0, 1);
    send(group, 0, {now()});
  }
  const std::vector<std::int64_t> told = received(group, 0, 3);
  ClockOffset offset{told[0], told[1], told[2]};
  if (group.node() == 0 && std::abs(offset.offset_ns) <= offset.uncertainty_ns) offset.offset_ns = 0;
  return offset;
}

}  // namespace

ClockOffset compare_clocks(ProcessGroup& group, const ClockReading& now) {
  const ClockReading clock = now ? now : steady_ns;
  if (group.rank() != 0) return answer(group, clock);
  for (int rank = 1; rank < group.size(); ++rank) compare_with(group, rank, clock);
  return {.at_ns = clock()};
}

std::int64_t time_of_rank_0(std::span<const ClockOffset> comparisons, std::int64_t time_ns) {
  if (comparisons.empty()) return time_ns;
  const auto next = std::ranges::lower_bound(comparisons, time_ns, {}, &ClockOffset::at_ns);
  if (next == comparisons.begin()) return time_ns + comparisons.front().offset_ns;
  const ClockOffset& before = *std::prev(next);
  if (next == comparisons.end()) return time_ns + before.offset_ns;
  const double share = static_cast<double>(time_ns - before.at_ns) / static_cast<double>(next->at_ns - before.at_ns);
  const double change = static_cast<double>(next->offset_ns - before.offset_ns);
  return time_ns + before.offset_ns + static_cast<std::int64_t>(share * change);
}

}  // namespace tandem::comm

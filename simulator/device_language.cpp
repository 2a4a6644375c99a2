// Barriers, warp operations and checked accesses of kernels.
#include "tandem/simulator/device_language.h"

#include "tandem/simulator/builtins.h"
#include "tandem/simulator/engine.h"
#include "tandem/simulator/shadow.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>

uint3 threadIdx{}, blockIdx{};
dim3 blockDim, gridDim;

namespace tandem::simulator {

namespace {

using Slots = std::array<void*, kWarpSize>;

struct ShuffleSlot {
  alignas(16) char value[16] = {};
  unsigned source = 0;
  bool source_is_missing = false;
};

/// The lane that lane `lane` reads from, by the rules of the PTX instruction shfl: lanes outside of the segment of
/// `width` lanes read themselves.
unsigned source_lane(Shuffle kind, unsigned lane, unsigned operand, unsigned width) {
  const unsigned first = lane & ~(width - 1), last = first + width - 1;  // width is a power of two
  switch (kind) {
    case Shuffle::index:
      return first + (operand & (width - 1));
    case Shuffle::up:
      return lane < first + operand ? lane : lane - operand;
    case Shuffle::down:
      return lane + operand > last ? lane : lane + operand;
    case Shuffle::exclusive_or:
      return (lane ^ operand) > last ? lane : lane ^ operand;
  }
  return lane;
}

void finish_shuffle(const Slots& slots, unsigned present) {
  std::array<std::array<char, 16>, kWarpSize> values;
  for (unsigned lanes = present; lanes != 0; lanes &= lanes - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(lanes));
    std::memcpy(values[lane].data(), static_cast<ShuffleSlot*>(slots[lane])->value, 16);
  }
  for (unsigned lanes = present; lanes != 0; lanes &= lanes - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(lanes));
    auto& slot = *static_cast<ShuffleSlot*>(slots[lane]);
    slot.source_is_missing = (present >> slot.source & 1u) == 0;
    if (!slot.source_is_missing) std::memcpy(slot.value, values[slot.source].data(), 16);
  }
}

[[noreturn, gnu::cold]] void refuse_width(int width, Where where) {
  engine().raise(FaultKind::mask, site_id(where),
                 fmt::format("a shuffle of width {}; it must be 1, 2, 4, 8, 16 or 32", width));
}

[[noreturn, gnu::cold]] void refuse_source(unsigned source, unsigned mask, Where where) {
  engine().raise(FaultKind::mask, site_id(where),
                 fmt::format("lane {} reads from lane {}, which mask {:#010x} leaves out, or which is not there",
                             engine().current().lane(), source, mask));
}

struct BallotSlot {
  bool predicate;
  unsigned result;
};

void finish_ballot(const Slots& slots, unsigned) {
  unsigned result = 0;
  for (unsigned lane = 0; lane < kWarpSize; ++lane) {
    if (slots[lane] != nullptr && static_cast<BallotSlot*>(slots[lane])->predicate) result |= 1u << lane;
  }
  for (void* const slot : slots) {
    if (slot != nullptr) static_cast<BallotSlot*>(slot)->result = result;
  }
}

struct MatchSlot {
  std::uint64_t value;
  unsigned result, present;
};

void finish_match(const Slots& slots, unsigned present) {
  for (void* const mine : slots) {
    if (mine == nullptr) continue;
    auto& slot = *static_cast<MatchSlot*>(mine);
    slot.result = 0;
    slot.present = present;
    for (unsigned lane = 0; lane < kWarpSize; ++lane) {
      if (slots[lane] != nullptr && static_cast<MatchSlot*>(slots[lane])->value == slot.value)
        slot.result |= 1u << lane;
    }
  }
}

struct ReduceSlot {
  Reduce kind;
  unsigned value;
};

unsigned combine(Reduce kind, unsigned a, unsigned b) {
  switch (kind) {
    case Reduce::add:
      return a + b;
    case Reduce::min_signed:
      return static_cast<int>(a) < static_cast<int>(b) ? a : b;
    case Reduce::max_signed:
      return static_cast<int>(a) > static_cast<int>(b) ? a : b;
    case Reduce::min_unsigned:
      return a < b ? a : b;
    case Reduce::max_unsigned:
      return a > b ? a : b;
    case Reduce::bit_and:
      return a & b;
    case Reduce::bit_or:
      return a | b;
    case Reduce::bit_xor:
      return a ^ b;
  }
  return a;
}

void finish_reduce(const Slots& slots, unsigned present) {
  const auto first = static_cast<unsigned>(std::countr_zero(present));
  ReduceSlot total = *static_cast<ReduceSlot*>(slots[first]);
  for (unsigned lane = first + 1; lane < kWarpSize; ++lane) {
    if (slots[lane] != nullptr)
      total.value = combine(total.kind, total.value, static_cast<ReduceSlot*>(slots[lane])->value);
  }
  for (void* const slot : slots) {
    if (slot != nullptr) static_cast<ReduceSlot*>(slot)->value = total.value;
  }
}

void check(const void* address, std::size_t bytes, Access kind, Where where) {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  if (at % bytes != 0) {
    engine().raise(FaultKind::misaligned, site_id(where),
                   fmt::format("{} bytes at {:#x}, which is no multiple of {}", bytes, at, bytes));
  }
  if constexpr (kChecksMemory) check_access(at, bytes, kind, site_id(where));
}

}  // namespace

void sync_threads(Where where) { engine().barrier(where); }

int sync_threads_count(bool predicate, Where where) { return engine().barrier(where, predicate); }

void sync_warp(unsigned mask, Where where) {
  engine().meet(WarpOperation::sync, mask, &mask, [](const Slots&, unsigned) {}, where);
}

void shuffle(Shuffle kind, unsigned mask, void* value, std::size_t bytes, unsigned operand, int width, Where where) {
  Engine& e = engine();
  if (width <= 0 || width > 32 || (width & (width - 1)) != 0) refuse_width(width, where);
  ShuffleSlot slot;
  slot.source = source_lane(kind, e.current().lane(), operand, static_cast<unsigned>(width));
  bytes == 4 ? std::memcpy(slot.value, value, 4) : std::memcpy(slot.value, value, bytes);
  e.meet(WarpOperation::shuffle, mask, &slot, finish_shuffle, where);
  if (slot.source_is_missing) refuse_source(slot.source, mask, where);
  bytes == 4 ? std::memcpy(value, slot.value, 4) : std::memcpy(value, slot.value, bytes);
}

unsigned ballot(unsigned mask, bool predicate, Where where) {
  BallotSlot slot{predicate, 0};
  engine().meet(WarpOperation::vote, mask, &slot, finish_ballot, where);
  return slot.result;
}

unsigned match_any(unsigned mask, std::uint64_t value, Where where) {
  MatchSlot slot{value, 0, 0};
  engine().meet(WarpOperation::match, mask, &slot, finish_match, where);
  return slot.result;
}

unsigned match_all(unsigned mask, std::uint64_t value, Where where) {
  MatchSlot slot{value, 0, 0};
  engine().meet(WarpOperation::match, mask, &slot, finish_match, where);
  return slot.result == slot.present ? slot.present : 0;
}

unsigned reduce(Reduce kind, unsigned mask, unsigned value, Where where) {
  ReduceSlot slot{kind, value};
  engine().meet(WarpOperation::reduce, mask, &slot, finish_reduce, where);
  return slot.value;
}

unsigned active_mask() {
  // Threads run one at a time: the only lane that is certainly here is this one.
  return 1u << engine().current().lane();
}

void fence() {
  if constexpr (kChecksMemory) engine().fence();
}

void device_fence() {
  if constexpr (kChecksMemory) engine().device_fence();
}

void pause(Where where) { engine().poll(site_id(where)); }

void finish_atomic(const void* address, bool changed, Where where) {
  Engine& e = engine();
  if constexpr (kChecksMemory) e.pass_signal(reinterpret_cast<std::uintptr_t>(address));
  if (changed)
    e.note_change();
  else
    e.poll(site_id(where));
}

void check_atomic(const void* address, std::size_t bytes, Where where) { check(address, bytes, Access::atomic, where); }

void read(void* to, const void* address, std::size_t bytes, Where where) {
  check(address, bytes, Access::read, where);
  std::memcpy(to, address, bytes);
}

void write(void* address, const void* from, std::size_t bytes, Where where) {
  check(address, bytes, Access::write, where);
  std::memcpy(address, from, bytes);
}

void move_bytes(void* to, const void* from, std::size_t bytes) { std::memcpy(to, from, bytes); }

}  // namespace tandem::simulator

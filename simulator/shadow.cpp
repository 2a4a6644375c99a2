// Checking accesses against the shadow.
#include "tandem/simulator/shadow.h"

#include "tandem/simulator/device_memory.h"
#include "tandem/simulator/lint.h"
#include "tandem/simulator/shared_memory.h"
#include "tandem/simulator/timeline.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <bit>
#include <stdexcept>
#include <utility>

namespace tandem::simulator {

namespace {

/// True if what `earlier` stands for happened before anything the running thread does now.
inline bool is_ordered(std::uint64_t earlier, std::uint64_t now) {
  if (earlier <= Stamp::kBeingCopied) return true;
  const Stamp then(earlier), current(now);
  Engine& e = engine();
  if (then.serial() == current.serial()) {
    if (then.barrier() != current.barrier() || then.thread() == current.thread()) return true;
    const bool same_warp = then.thread() / kWarpSize == current.thread() / kWarpSize;
    if (same_warp && e.current().known[then.thread() % kWarpSize] > then.epoch()) return true;
    return e.has_acquired(then.thread(), then.epoch());
  }
  if (then.serial() >= e.first_serial_of_block() && then.serial() < current.serial()) return true;
  if (then.serial() >= e.first_serial_of_launch()) return e.lanes_of_known_block(then, 1) != 0;
  return happened_before_current(then.serial());
}

/// The lanes of a group of readers in this interval between barriers that the running thread is not ordered after.
inline std::uint32_t unordered_lanes(const Readers& group) {
  const Stamp then(group.stamp);
  Engine& e = engine();
  std::uint32_t lanes = group.lanes;
  const bool same_warp = then.thread() / kWarpSize == e.current().warp();
  if (same_warp) {
    lanes &= ~(1u << e.current().lane());
    for (std::uint32_t rest = lanes; rest != 0; rest &= rest - 1)
      if (e.current().known[std::countr_zero(rest)] > then.epoch()) lanes &= ~(rest & -rest);
  }
  if (!e.has_acquired_any()) return lanes;
  for (std::uint32_t rest = lanes; rest != 0; rest &= rest - 1)
    if (e.has_acquired(then.thread() + static_cast<unsigned>(std::countr_zero(rest)), then.epoch()))
      lanes &= ~(rest & -rest);
  return lanes;
}

/// True for what an earlier block of this launch did.
inline bool is_of_other_block(Stamp then) {
  return then.serial() >= engine().first_serial_of_launch() && then.serial() < engine().first_serial_of_block();
}

/// True if all of them read before anything the running thread does now.
inline bool are_ordered(const Readers& group, std::uint64_t now) {
  if (group.stamp == Stamp::kNever) return true;
  const Stamp then(group.stamp), current(now);
  if (is_of_other_block(then)) return engine().lanes_of_known_block(then, group.lanes) == group.lanes;
  if (then.serial() != current.serial()) return is_ordered(group.stamp, now);
  // No barrier ends what is under way, and not even the thread that has started it comes after it.
  if (then.epoch() == Stamp::kUnfinishedEpoch) return false;
  return then.barrier() != current.barrier() || unordered_lanes(group) == 0;
}

/// The stamp of one of the readers that the running thread is not ordered after.
std::uint64_t first_unordered(const Readers& group, std::uint64_t now) {
  std::uint32_t lanes = group.lanes;
  const Stamp then(group.stamp);
  if (is_of_other_block(then)) {
    lanes &= ~engine().lanes_of_known_block(then, lanes);
  } else if (then.serial() == Stamp(now).serial() && then.epoch() != Stamp::kUnfinishedEpoch) {
    lanes = unordered_lanes(group);
  }
  return group.stamp | std::uint64_t(std::countr_zero(lanes)) << 2;
}

/// True for readers in blocks of this launch that have ended and handed nothing on: no later access in the launch is
/// ordered after them.
inline bool are_of_ended_block(const Readers& group) {
  return is_of_other_block(Stamp(group.stamp)) && !engine().has_handed_on(Stamp(group.stamp).serial());
}

/// "block (0,0,0), thread (3,0,0)" of the same launch, or the work it was.
std::string actor(Stamp stamp) {
  Engine& e = engine();
  if (stamp.serial() < e.first_serial_of_launch()) return name_of_work(stamp.serial());
  const std::string block = stamp.serial() == e.block_serial() ? "the same block" : "another block";
  return fmt::format("thread {} of {}", stamp.thread(), block);
}

[[noreturn]] void raise_race(std::uintptr_t address, Access kind, SiteId where, std::uint64_t earlier,
                             bool earlier_wrote, SiteId earlier_site) {
  const bool shared = shared_shadow().covers(address);
  engine().raise(FaultKind::race, where,
                 fmt::format("{} of {} that {} {} at {}, with nothing between to order them",
                             kind == Access::read ? "read" : (kind == Access::write ? "write" : "atomic"),
                             shared ? describe_shared(address) : describe_device_address(address),
                             actor(Stamp(earlier)), earlier_wrote ? "wrote" : "read", site_of(earlier_site).text()),
                 earlier_site);
}

[[noreturn]] void raise_missing(std::uintptr_t address, std::size_t size, Access kind, SiteId where) {
  const bool shared = shared_shadow().covers(address);
  engine().raise(FaultKind::out_of_bounds, where,
                 fmt::format("{} of {} bytes at {}", kind == Access::read ? "read" : "write", size,
                             shared ? describe_shared(address) : describe_device_address(address)));
}

/// Nobody has written yet, or a copy that nobody has waited for is to.
[[noreturn, gnu::noinline]] void raise_no_value(const ShadowCell& cell, std::uintptr_t address, SiteId where,
                                                Access kind, bool shared) {
  const std::string place = shared ? describe_shared(address) : describe_device_address(address);
  if (cell.write != Stamp::kBeingCopied)
    engine().raise(FaultKind::uninitialised, where, fmt::format("nobody has written {} yet", place));
  engine().raise(FaultKind::async_copy, where,
                 fmt::format("{} of {}, which the copy at {} is to fill; nobody has waited for it yet",
                             kind == Access::read ? "read" : "write", place, site_of(cell.write_site).text()),
                 cell.write_site);
}

}  // namespace

void Shadow::map(void* base, std::size_t bytes) {
  base_ = reinterpret_cast<std::uintptr_t>(base);
  bytes_ = bytes;
  void* const memory = mmap(nullptr, bytes / kWord * sizeof(ShadowCell), PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::runtime_error("simulator: no address space for the shadow of device memory");
  cells_ = static_cast<ShadowCell*>(memory);
}

ShadowCell* Shadow::split(ShadowCell& cell) {
  std::size_t index = split_.size();
  if (free_split_.empty()) {
    split_.emplace_back();
  } else {
    index = free_split_.back();
    free_split_.pop_back();
  }
  for (ShadowCell& byte : split_[index]) {
    byte = cell;
    byte.more_readers = lists_.copy(cell.more_readers);
    if (byte.more_readers != 0 && this == &global_shadow()) listed_.push_back(&byte);
  }
  lists_.clear(cell.more_readers);
  cell = {};
  cell.write = index;
  cell.write_site = kSplit;
  return split_[index].data();
}

inline void Shadow::reset(ShadowCell& cell, std::uint64_t write, SiteId where) {
  if (cell.more_readers != 0) lists_.clear(cell.more_readers);
  cell = {write, {}, where, 0};
}

void Shadow::set(std::uintptr_t address, std::size_t size, std::uint64_t state, SiteId where) {
  const std::uintptr_t end = address + size;
  // Whole words first become whole again.
  for (std::uintptr_t at = (address + kWord - 1) / kWord * kWord; at + kWord <= end; at += kWord) {
    ShadowCell& cell = word(at);
    if (cell.write_site == kSplit) {
      for (std::size_t i = 0; i < kWord; ++i) lists_.clear(bytes_of(cell)[i].more_readers);
      free_split_.push_back(static_cast<std::size_t>(cell.write));
    }
    reset(cell, state, where);
  }
  for_each_cell(address, size, [&](ShadowCell& cell, std::uintptr_t, std::size_t bytes) {
    if (bytes == 1) reset(cell, state, where);
  });
}

void Shadow::access(std::uintptr_t address, std::size_t size, Access kind, SiteId where) {
  if (size == kWord && (address - base_) % kWord == 0) {
    ShadowCell& cell = word(address);
    if (cell.write_site != kSplit) return access_cell(cell, address, size, kind, where);
  }
  for_each_cell(address, size,
                [&](ShadowCell& cell, std::uintptr_t at, std::size_t) { access_cell(cell, at, size, kind, where); });
}

inline void Shadow::note_read(ShadowCell& cell, std::uint64_t now, SiteId where) {
  const std::uint64_t warp = Stamp(now).of_warp();
  const std::uint32_t lane = 1u << Stamp(now).thread() % kWarpSize;
  if (cell.readers.stamp == warp) {
    cell.readers.lanes |= lane;
  } else if (cell.more_readers == 0 && are_ordered(cell.readers, now)) {
    cell.readers = {warp, lane, where};
  } else if (!are_of_ended_block(cell.readers)) {
    note_another_read(cell, now, where);
  }
}

/// Of readers that this one is ordered after, none is needed: what comes after it comes after them.
void Shadow::note_another_read(ShadowCell& cell, std::uint64_t now, SiteId where) {
  const std::uint64_t warp = Stamp(now).of_warp();
  const std::uint32_t lane = 1u << Stamp(now).thread() % kWarpSize;
  Readers* const mine = lists_.find(cell.more_readers, [&](const Readers& group) { return group.stamp == warp; });
  if (mine != nullptr) {
    mine->lanes |= lane;
    return;
  }
  const Engine::Aside aside(engine());
  if (cell.more_readers != 0) {
    // One of a block that has ended is as good as any in this launch; it goes first, where it is found at once.
    const Readers* const ended = lists_.find(cell.more_readers, are_of_ended_block);
    if (ended != nullptr) {
      const Readers first = *ended;
      lists_.add(cell.more_readers, cell.readers);
      cell.readers = first;
      lists_.erase_if(cell.more_readers, [&](const Readers& group) {
        return Stamp(group.stamp).serial() >= engine().first_serial_of_launch() || are_ordered(group, now);
      });
      return;
    }
    const auto is_past = [&](const Readers& group) { return are_ordered(group, now); };
    if (lists_.find(cell.more_readers, is_past) != nullptr) lists_.erase_if(cell.more_readers, is_past);
  }
  if (are_ordered(cell.readers, now)) {
    cell.readers = {warp, lane, where};
    return;
  }
  if (this == &global_shadow()) {
    const auto is_of_block = [](const Readers& group) {
      return Stamp(group.stamp).serial() >= engine().first_serial_of_block();
    };
    if (lists_.find(cell.more_readers, is_of_block) == nullptr) listed_.push_back(&cell);
  }
  lists_.add(cell.more_readers, {warp, lane, where});
}

inline void Shadow::check_readers(const ShadowCell& cell, std::uintptr_t address, Access kind, SiteId where,
                                  std::uint64_t now) {
  const Readers* group = &cell.readers;
  if (are_ordered(cell.readers, now)) {
    if (cell.more_readers == 0) return;
    group = lists_.find(cell.more_readers, [&](const Readers& one) { return !are_ordered(one, now); });
    if (group == nullptr) return;
  }
  raise_race(address, kind, where, first_unordered(*group, now), false, group->site);
}

inline void Shadow::access_cell(ShadowCell& cell, std::uintptr_t address, std::size_t size, Access kind, SiteId where) {
  // Nothing can have come between two accesses of a thread with one stamp but what was ordered or a fault.
  std::uint64_t now = engine().now();
  if (kind == Access::read) {
    if (cell.readers.stamp == Stamp(now).of_warp() && (cell.readers.lanes >> Stamp(now).thread() % kWarpSize & 1u) != 0)
      return;
    if (cell.write == now) return note_read(cell, now, where);
  } else if (kind == Access::atomic) {
    now |= Stamp::kAtomicBit;
  }
  if (cell.write == now) return;
  if (cell.write == Stamp::kNotAllocated) raise_missing(address, size, kind, where);
  const bool shared = this == &shared_shadow();
  // Shared memory does not outlive its block.
  if (shared && Stamp(cell.write).serial() < engine().first_serial_of_block() && cell.write != Stamp::kBeingCopied)
    reset(cell, Stamp::kUninitialised, 0);
  const bool both_atomic = kind == Access::atomic && Stamp(cell.write).atomic();
  if (!both_atomic && !is_ordered(cell.write, now)) raise_race(address, kind, where, cell.write, true, cell.write_site);
  if (cell.write == Stamp::kBeingCopied || (cell.write == Stamp::kUninitialised && kind != Access::write))
    raise_no_value(cell, address, where, kind, shared);
  if (kind == Access::read) return note_read(cell, now, where);
  if (cell.readers.stamp != Stamp::kNever) check_readers(cell, address, kind, where, now);
  if (kind == Access::write) engine().note_change();
  reset(cell, now, where);
}

void Shadow::forget_order(std::uintptr_t address, std::size_t size) {
  for_each_cell(address, size, [&](ShadowCell& cell, std::uintptr_t, std::size_t) {
    if (cell.write > Stamp::kBeingCopied) cell.write = Stamp::kLongAgo;
    cell.readers = {};
    lists_.clear(cell.more_readers);
  });
}

void Shadow::note_work_read(ShadowCell& cell, std::uint64_t now, SiteId where) {
  const auto is_past = [](const Readers& group) { return happened_before_current(Stamp(group.stamp).serial()); };
  lists_.erase_if(cell.more_readers, is_past);
  const Readers reader{Stamp(now).of_warp(), 1u << Stamp(now).thread() % kWarpSize, where};
  if (cell.readers.stamp == Stamp::kNever || is_past(cell.readers)) {
    cell.readers = reader;
  } else {
    lists_.add(cell.more_readers, reader);
  }
}

void Shadow::note_work_write(ShadowCell& cell, std::uint64_t now, SiteId where) { reset(cell, now, where); }

void Shadow::finish_reads(std::uintptr_t address, std::size_t size) {
  const unsigned warp = engine().current().warp();
  const auto is_unfinished = [&](const Readers& group) {
    const Stamp then(group.stamp);
    return then.epoch() == Stamp::kUnfinishedEpoch && then.thread() / kWarpSize == warp;
  };
  for_each_cell(address, size, [&](ShadowCell& cell, std::uintptr_t, std::size_t) {
    if (lists_.find(cell.more_readers, is_unfinished) != nullptr) lists_.erase_if(cell.more_readers, is_unfinished);
    if (!is_unfinished(cell.readers)) return;
    cell.readers = {};
    // Another group takes its place, or else the list would not be looked at.
    if (const Readers* const other = lists_.find(cell.more_readers, [](const Readers&) { return true; })) {
      cell.readers = *other;
      lists_.erase_if(cell.more_readers, [&](const Readers& group) { return group.stamp == cell.readers.stamp; });
    }
  });
}

void Shadow::finish_block() {
  const std::uint64_t first = engine().first_serial_of_block();
  for (ShadowCell* const cell : listed_) {
    const auto is_of_block = [&](const Readers& group) { return Stamp(group.stamp).serial() >= first; };
    Readers last;  // where others come after a part of the block, it is the last one to be known to them
    if (is_of_block(cell->readers)) last = cell->readers;
    lists_.find(cell->more_readers, [&](const Readers& group) {
      if (is_of_block(group) && group.stamp > last.stamp) last = group;
      return false;
    });
    if (is_of_block(cell->readers)) cell->readers = std::exchange(last, {});
    lists_.erase_if(cell->more_readers, is_of_block);
    if (last.stamp != Stamp::kNever) lists_.add(cell->more_readers, last);
  }
  listed_.clear();
}

Shadow detail::global_shadow, detail::shared_shadow;

bool checks_memory() { return kChecksMemory; }

void forget_order() {
  if constexpr (!kChecksMemory) return;
  forget_order_of_shared_memory();
  forget_order_of_device_memory();
  forget_timeline();
}

namespace {

extern "C" const char __data_start, _end;  // of the program's own variables, threadIdx among them

/// Accesses outside of device and shared memory: the thread's own stack, kernel arguments and constants are right.
void check_elsewhere(std::uintptr_t address, std::size_t size, Access kind, SiteId where) {
  const auto variables = reinterpret_cast<std::uintptr_t>(&__data_start);
  if (address - variables < reinterpret_cast<std::uintptr_t>(&_end) - variables) {
    if (kind != Access::read) engine().note_change();
    return;
  }
  Engine& e = engine();
  if (e.stacks().contains(address, e.current().linear)) return;
  if (address - reinterpret_cast<std::uintptr_t>(e.launch().arguments) < e.launch().argument_bytes) return;
  if (is_program_data(address)) return;
  const char* const what = e.stacks().contains(address) ? "the stack of another thread" : "memory of the host";
  e.raise(FaultKind::host_pointer, where,
          fmt::format("{} of {} bytes at {:#x}, which is {}", kind == Access::read ? "read" : "write", size, address,
                      what));
}

}  // namespace

void check_access(std::uintptr_t address, std::size_t size, Access kind, SiteId where) {
  Engine& e = engine();
  if (!e.running()) return;
  const bool shared = shared_shadow().covers(address);
  if (!shared && !global_shadow().covers(address)) return check_elsewhere(address, size, kind, where);
  if (lint_is_on()) {
    const Engine::Aside aside(e);
    count_request(address, size, shared, kind != Access::read, where);
  }
  (shared ? shared_shadow() : global_shadow()).access(address, size, kind, where);
}

}  // namespace tandem::simulator

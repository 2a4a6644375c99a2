// Checking accesses against the shadow.
#include "simulator/shadow.h"

#include "simulator/async_copy.h"
#include "simulator/device_memory.h"
#include "simulator/lint.h"
#include "simulator/mbarrier.h"
#include "simulator/shared_memory.h"
#include "simulator/timeline.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <stdexcept>

namespace tandem::simulator {

namespace {

/// True if what `earlier` stands for happened before anything the running thread does now.
inline bool is_ordered(std::uint64_t earlier, std::uint64_t now) {
  if (earlier <= Stamp::kUninitialised) return true;
  const Stamp then(earlier), current(now);
  Engine& e = engine();
  if (then.serial() == current.serial()) {
    if (then.barrier() != current.barrier() || then.thread() == current.thread()) return true;
    const bool same_warp = then.thread() / kWarpSize == current.thread() / kWarpSize;
    if (same_warp && e.current().known[then.thread() % kWarpSize] > then.epoch()) return true;
    return e.has_acquired(then.thread(), then.epoch());
  }
  if (then.serial() >= e.first_serial_of_block() && then.serial() < current.serial()) return true;
  if (then.serial() >= e.first_serial_of_launch()) return false;
  return happened_before_current(then.serial());
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

[[noreturn]] void raise_uninitialised(std::uintptr_t address, bool shared, SiteId where) {
  if (shared && is_being_copied_to(address)) {
    engine().raise(
        FaultKind::async_copy, where,
        fmt::format("read of {}, which a cp.async that nobody has waited for is to fill", describe_shared(address)));
  }
  if (shared && is_tile_being_copied_to(address)) {
    engine().raise(FaultKind::async_copy, where,
                   fmt::format("read of {}, which a copy of a tile is to fill that nobody has waited for",
                               describe_shared(address)));
  }
  engine().raise(
      FaultKind::uninitialised, where,
      fmt::format("nobody has written {} yet", shared ? describe_shared(address) : describe_device_address(address)));
}

/// Keeps the two readers that say most: readers that the new one is ordered after are no longer needed.
inline void note_read(ShadowCell& cell, std::uint64_t now, SiteId where) {
  if (cell.first_read == Stamp::kNever || is_ordered(cell.first_read, now)) {
    cell.first_read = now;
    cell.read_site = where;
    if (cell.other_read != Stamp::kNever && is_ordered(cell.other_read, now)) cell.other_read = Stamp::kNever;
  } else if (cell.other_read == Stamp::kNever || is_ordered(cell.other_read, now) ||
             Stamp(cell.other_read).thread() / kWarpSize == Stamp(cell.first_read).thread() / kWarpSize) {
    cell.other_read = now;
  }
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
  split_[index].fill(cell);
  cell = {};
  cell.write = index;
  cell.write_site = kSplit;
  return split_[index].data();
}

void Shadow::set(std::uintptr_t address, std::size_t size, std::uint64_t state, SiteId where) {
  const std::uintptr_t end = address + size;
  // Whole words first become whole again.
  for (std::uintptr_t at = (address + kWord - 1) / kWord * kWord; at + kWord <= end; at += kWord) {
    ShadowCell& cell = word(at);
    if (cell.write_site == kSplit) free_split_.push_back(static_cast<std::size_t>(cell.write));
    cell = {};
    cell.write = state;
    cell.write_site = where;
  }
  for_each_cell(address, size, [&](ShadowCell& cell, std::uintptr_t, std::size_t bytes) {
    if (bytes == 1) {
      cell = {};
      cell.write = state;
      cell.write_site = where;
    }
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

inline void Shadow::access_cell(ShadowCell& cell, std::uintptr_t address, std::size_t size, Access kind, SiteId where) {
  // Nothing can have come between two accesses of a thread with one stamp but what was ordered or a fault.
  std::uint64_t now = engine().now();
  if (kind == Access::read) {
    if (cell.first_read == now) return;
    if (cell.write == now) return note_read(cell, now, where);
  } else if (kind == Access::atomic) {
    now |= Stamp::kAtomicBit;
  }
  if (cell.write == now) return;
  if (cell.write == Stamp::kNotAllocated) raise_missing(address, size, kind, where);
  const bool shared = this == &shared_shadow();
  // Shared memory does not outlive its block.
  if (shared && cell.write != Stamp::kUninitialised && Stamp(cell.write).serial() < engine().first_serial_of_block())
    cell = {Stamp::kUninitialised, Stamp::kNever, Stamp::kNever, 0, 0};
  const bool both_atomic = kind == Access::atomic && Stamp(cell.write).atomic();
  if (!both_atomic && !is_ordered(cell.write, now)) raise_race(address, kind, where, cell.write, true, cell.write_site);
  if (kind != Access::write && cell.write == Stamp::kUninitialised) raise_uninitialised(address, shared, where);
  if (kind == Access::read) return note_read(cell, now, where);
  if (!is_ordered(cell.first_read, now)) raise_race(address, kind, where, cell.first_read, false, cell.read_site);
  if (!is_ordered(cell.other_read, now)) raise_race(address, kind, where, cell.other_read, false, cell.read_site);
  cell = {now, Stamp::kNever, Stamp::kNever, where, 0};
}

void Shadow::forget_order(std::uintptr_t address, std::size_t size) {
  for_each_cell(address, size, [](ShadowCell& cell, std::uintptr_t, std::size_t) {
    if (cell.write > Stamp::kUninitialised) cell.write = Stamp::kLongAgo;
    cell.first_read = cell.other_read = Stamp::kNever;
  });
}

Shadow detail::global_shadow, detail::shared_shadow;

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
  if (address - variables < reinterpret_cast<std::uintptr_t>(&_end) - variables) return;
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

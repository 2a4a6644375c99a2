// The shadow of memory: who wrote and read each word last, and whether anybody wrote it at all.
#pragma once

#include "tandem/simulator/engine.h"
#include "tandem/simulator/readers.h"
#include "tandem/simulator/stamp.h"

#include <cstddef>
#include <deque>
#include <vector>

namespace tandem::simulator {

/// True in builds whose kernels are compiled with hooks at every access; without them there is no shadow. For the
/// simulator and its own tests, which alone are compiled with the macro: others ask checks_memory().
#ifdef TANDEM_SIMULATOR_RACE
inline constexpr bool kChecksMemory = true;
#else
inline constexpr bool kChecksMemory = false;
#endif
/// Whether it is such a build.
bool checks_memory();

/// Of one word of 4 bytes, or of one byte of a word whose bytes have different histories. A write has to be ordered
/// after all readers; most words have one group of them.
struct ShadowCell {
  std::uint64_t write = Stamp::kNotAllocated;
  Readers readers;
  SiteId write_site = 0;
  ReaderLists::List more_readers = 0;
};

enum class Access : std::uint8_t { read, write, atomic };

/// The cells of one range of memory. Accesses that are narrower than a word split its cell into one per byte.
class Shadow {
 public:
  static constexpr std::size_t kWord = 4;
  static constexpr SiteId kSplit = 0xffffffffu;

  /// Shadow for `bytes` of memory at `base`; zero pages until touched.
  void map(void* base, std::size_t bytes);
  bool covers(std::uintptr_t address) const { return address - base_ < bytes_; }

  /// Checks an access of the running thread and writes it down. Ends the launch where something is wrong.
  void access(std::uintptr_t address, std::size_t size, Access kind, SiteId where);

  /// Gives bytes a state (one of those in Stamp, or the stamp of a write) and forgets their history; `where` is that of
  /// the write or copy.
  void set(std::uintptr_t address, std::size_t size, std::uint64_t state, SiteId where = 0);

  /// Calls `visit(cell, address, bytes)` for every cell of a range.
  template <typename Visit>
  void for_each_cell(std::uintptr_t address, std::size_t size, Visit&& visit);

  /// Everything that was done to these bytes counts as long ago.
  void forget_order(std::uintptr_t address, std::size_t size);

  /// What is done to a cell by a piece of work that is no kernel: a copy or fill. `is_ordered(stamp)` tells what
  /// happened before it. Readers that it does not hold for, or null.
  template <typename IsOrdered>
  const Readers* unordered_readers(const ShadowCell& cell, IsOrdered&& is_ordered);
  void note_work_read(ShadowCell& cell, std::uint64_t now, SiteId where);
  void note_work_write(ShadowCell& cell, std::uint64_t now, SiteId where);

  /// What the running thread's warp read while Engine::Unfinished is now read.
  void finish_reads(std::uintptr_t address, std::size_t size);

  /// The running block has ended: its last reader of a word stands for all.
  void finish_block();

 private:
  ShadowCell& word(std::uintptr_t address) { return cells_[(address - base_) / kWord]; }
  void access_cell(ShadowCell& cell, std::uintptr_t address, std::size_t size, Access kind, SiteId where);
  void note_read(ShadowCell& cell, std::uint64_t now, SiteId where);
  [[gnu::noinline]] void note_another_read(ShadowCell& cell, std::uint64_t now, SiteId where);
  void check_readers(const ShadowCell& cell, std::uintptr_t address, Access kind, SiteId where, std::uint64_t now);
  void reset(ShadowCell& cell, std::uint64_t write, SiteId where);
  ShadowCell* split(ShadowCell& cell);
  ShadowCell* bytes_of(const ShadowCell& cell) { return split_[static_cast<std::size_t>(cell.write)].data(); }

  std::uintptr_t base_ = 1;
  std::size_t bytes_ = 0;
  ShadowCell* cells_ = nullptr;
  std::deque<std::array<ShadowCell, kWord>> split_;  // a split cell's `write` is the index
  std::vector<std::size_t> free_split_;
  ReaderLists lists_;
  std::vector<ShadowCell*> listed_;  // in global memory: whose lists the running block has added to
};

template <typename IsOrdered>
const Readers* Shadow::unordered_readers(const ShadowCell& cell, IsOrdered&& is_ordered) {
  if (!is_ordered(cell.readers.stamp)) return &cell.readers;
  return lists_.find(cell.more_readers, [&](const Readers& group) { return !is_ordered(group.stamp); });
}

template <typename Visit>
void Shadow::for_each_cell(std::uintptr_t address, std::size_t size, Visit&& visit) {
  const std::uintptr_t end = address + size;
  while (address < end) {
    ShadowCell& cell = word(address);
    const std::uintptr_t word_start = address - (address - base_) % kWord;
    if (cell.write_site != kSplit && address == word_start && end - address >= kWord) {
      visit(cell, address, kWord);
      address += kWord;
      continue;
    }
    ShadowCell* const bytes = cell.write_site == kSplit ? bytes_of(cell) : split(cell);
    for (; address < end && address < word_start + kWord; ++address)
      visit(bytes[address - word_start], address, std::size_t{1});
  }
}

namespace detail {
extern Shadow global_shadow, shared_shadow;
}
inline Shadow& global_shadow() { return detail::global_shadow; }
inline Shadow& shared_shadow() { return detail::shared_shadow; }

/// What instrumented code calls for each access; see hooks.cpp.
void check_access(std::uintptr_t address, std::size_t size, Access kind, SiteId where);

}  // namespace tandem::simulator

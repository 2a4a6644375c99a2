// The shadow of memory: who wrote and read each word last, and whether anybody wrote it at all.
#pragma once

#include "simulator/engine.h"
#include "simulator/stamp.h"

#include <cstddef>
#include <deque>
#include <vector>

namespace tandem::simulator {

/// True in builds whose kernels are compiled with hooks at every access; without them there is no shadow.
#ifdef TANDEM_SIMULATOR_RACE
inline constexpr bool kChecksMemory = true;
#else
inline constexpr bool kChecksMemory = false;
#endif

/// Of one word of 4 bytes, or of one byte of a word whose bytes have different histories. Two readers are kept: a write
/// has to be ordered after both.
struct ShadowCell {
  std::uint64_t write = Stamp::kNotAllocated;
  std::uint64_t first_read = Stamp::kNever;
  std::uint64_t other_read = Stamp::kNever;
  SiteId write_site = 0;
  SiteId read_site = 0;
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

  /// Gives bytes a state (kNotAllocated, kUninitialised, kLongAgo, or the stamp of a write at `where`) and forgets
  /// their history.
  void set(std::uintptr_t address, std::size_t size, std::uint64_t state, SiteId where = 0);

  /// Calls `visit(cell, address, bytes)` for every cell of a range.
  template <typename Visit>
  void for_each_cell(std::uintptr_t address, std::size_t size, Visit&& visit);

  /// Everything that was done to these bytes counts as long ago.
  void forget_order(std::uintptr_t address, std::size_t size);

 private:
  ShadowCell& word(std::uintptr_t address) { return cells_[(address - base_) / kWord]; }
  void access_cell(ShadowCell& cell, std::uintptr_t address, std::size_t size, Access kind, SiteId where);
  ShadowCell* split(ShadowCell& cell);
  ShadowCell* bytes_of(const ShadowCell& cell) { return split_[static_cast<std::size_t>(cell.write)].data(); }

  std::uintptr_t base_ = 1;
  std::size_t bytes_ = 0;
  ShadowCell* cells_ = nullptr;
  std::deque<std::array<ShadowCell, kWord>> split_;  // a split cell's `write` is the index
  std::vector<std::size_t> free_split_;
};

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

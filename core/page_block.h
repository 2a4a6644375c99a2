// Large blocks of the CPU's memory, whose pages can go over to other blocks.
#pragma once

#include "tandem/core/page_file.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace tandem {

/// The least multiple of `unit` that is not below `bytes`.
constexpr std::int64_t round_up(std::int64_t bytes, std::int64_t unit) { return (bytes + unit - 1) / unit * unit; }

/// A range of addresses with memory of its own, from the system. Pages that have been written to are dear to get: the
/// system clears each. So a block may take over those of another one, which changes its addresses, and costs no copy.
/// Only on Linux, of blocks of at least 4 MiB, in pages of 2 MiB, and not with AddressSanitizer, which follows
/// addresses.
class PageBlock {
 public:
  static constexpr std::int64_t kPage = std::int64_t{2} << 20;

  PageBlock() = default;
  /// At least `bytes`, of zeros or of what is left there; the start is at a multiple of kAlignment. Empty where the
  /// system has no memory.
  explicit PageBlock(std::int64_t bytes);
  /// In `file`, of zeros.
  PageBlock(std::int64_t bytes, std::shared_ptr<PageFile> file);
  PageBlock(PageBlock&& other) noexcept;
  PageBlock& operator=(PageBlock&& other) noexcept;
  /// Gives all of it back.
  ~PageBlock();

  /// Whether one more may be in a file: each takes mappings of this process, which has so many and no more.
  static bool may_be_in_file();
  /// What PageBlock(bytes) has.
  static std::int64_t capacity_for(std::int64_t bytes);

  std::byte* start() const { return start_; }
  std::int64_t capacity() const { return capacity_; }
  bool has_movable_pages() const { return is_movable_; }

  /// A part of the block that the system may know as a mapping of its own: it moves one at a time.
  struct Part {
    std::int64_t bytes = 0;
    std::int64_t in_file = -1;  ///< where it begins in the block's file; below 0: in none
  };
  /// One after another. Of small blocks in no file none.
  std::span<const Part> parts() const { return parts_; }
  /// Whether all of it is in a file, where others find it.
  bool is_in_file() const { return !parts_.empty() && parts_.front().in_file >= 0; }
  /// A number that no other block of this process has or had, nor this one with other parts.
  std::uint64_t layout() const { return layout_; }

  /// Puts pages from the end of `donor` where this block's pages from `offset` on were, which are given back, and makes
  /// the donor that much smaller: `bytes`, or as many as both have and the system moves. Returns how many. `offset` and
  /// `bytes` are multiples of kPage. Both are in one file, or in none. Where the system refuses a move, and leaves open
  /// what has become of the addresses on either side, the block on that side ends before them, and nothing is moved any
  /// more in this process. Nothing is moved either while blocks are of more parts than one process should have
  /// mappings.
  std::int64_t take_pages(PageBlock& donor, std::int64_t offset, std::int64_t bytes);

  /// Gives `bytes` back, which are a multiple of kPage. Only of blocks whose pages can be moved.
  void give_back_end(std::int64_t bytes) noexcept;

  /// For a process made by fork(), as PageFile::keep_from_parent(). Others find this block no more.
  void leave_file() noexcept;

 private:
  void give_back() noexcept;
  void unmap_from(std::int64_t offset) noexcept;
  void cut_part_at(std::int64_t offset);
  void replace_parts(std::int64_t begin, std::int64_t end, const std::vector<Part>& parts);
  enum class Pages : std::uint8_t { elsewhere, gone };
  void end_at(std::int64_t capacity, Pages pages) noexcept;
  void give_back_in_file(const Part& part) noexcept;

  std::byte* start_ = nullptr;
  std::int64_t capacity_ = 0;
  bool is_movable_ = false;
  std::shared_ptr<PageFile> file_;
  std::vector<Part> parts_;
  std::uint64_t layout_ = 0;
};

}  // namespace tandem

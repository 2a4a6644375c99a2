// Mappings, and their moves.
#include "tandem/core/page_block.h"

#include "tandem/core/allocator.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <iterator>
#include <utility>

#if defined(__linux__)
#include <sys/mman.h>
#if !defined(__SANITIZE_ADDRESS__)
#define TANDEM_MAPS_BLOCKS 1
#endif
#endif

namespace tandem {

namespace {

bool is_large(std::int64_t capacity) { return capacity >= 2 * PageBlock::kPage; }

/// What has become of a move: where it is open, nobody may touch the addresses that pages should have gone to.
enum class Move { done, refused, open };

#ifdef TANDEM_MAPS_BLOCKS
// From the kernel itself: malloc would keep what is freed on its heap, and cut it up.
void* map(std::int64_t capacity) {
  const bool large = is_large(capacity);
  const std::int64_t spare = large ? PageBlock::kPage : 0;  // for alignment
  void* const mapped = mmap(nullptr, static_cast<std::size_t>(capacity + spare), PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  auto* const start = static_cast<std::byte*>(mapped);
  const auto misaligned = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(start) % PageBlock::kPage);
  const std::int64_t before = large && misaligned != 0 ? PageBlock::kPage - misaligned : 0;
  if (before > 0) munmap(start, static_cast<std::size_t>(before));
  if (spare > before) munmap(start + before + capacity, static_cast<std::size_t>(spare - before));
  if (large) madvise(start + before, static_cast<std::size_t>(capacity), MADV_HUGEPAGE);
  return start + before;
}

void unmap(void* start, std::int64_t capacity) noexcept {
  // The system refuses where it has as many mappings as it may, and this would make one into two.
  if (munmap(start, static_cast<std::size_t>(capacity)) != 0)
    madvise(start, static_cast<std::size_t>(capacity), MADV_DONTNEED);
}

/// What was mapped at `to` is given back. Where the system refuses, pages may be new there, if they are `of_no_file`.
Move move_mapping(void* from, void* to, std::int64_t bytes, bool of_no_file) {
  const auto size = static_cast<std::size_t>(bytes);
  if (mremap(from, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, to) != MAP_FAILED) return Move::done;
  if (errno == EPERM || errno == ENOSYS) return Move::refused;  // by a filter of system calls, before anything was done
  if (!of_no_file) return Move::open;
  // Before 6.17 Linux gives back what is at `to` before it looks at `from`. Another thread may have mapped something
  // there since, which must stay.
  void* const mapped = mmap(to, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  if (mapped == to) {
    madvise(to, size, MADV_HUGEPAGE);
    return Move::refused;
  }
  if (mapped != MAP_FAILED) munmap(mapped, size);  // Linux before 4.17 puts it elsewhere
  return Move::open;
}

/// Whether the system has all of it. Of several mappings Linux moves one after another, and may refuse in the middle.
bool is_mapped(void* start, std::int64_t bytes) {
  return madvise(start, static_cast<std::size_t>(bytes), MADV_NORMAL) == 0;
}
#else
void* map(std::int64_t capacity) {
  const std::int64_t alignment = is_large(capacity) ? PageBlock::kPage : kAlignment;
  return std::aligned_alloc(static_cast<std::size_t>(alignment), static_cast<std::size_t>(capacity));
}

void unmap(void* start, std::int64_t /*capacity*/) noexcept { std::free(start); }

Move move_mapping(void* /*from*/, void* /*to*/, std::int64_t /*bytes*/, bool /*of_no_file*/) { return Move::refused; }

bool is_mapped(void* /*start*/, std::int64_t /*bytes*/) { return true; }
#endif

/// The pages are given back in the file.
void unmap_file([[maybe_unused]] void* start, [[maybe_unused]] std::int64_t bytes) noexcept {
#if defined(__linux__)
  munmap(start, static_cast<std::size_t>(bytes));
#endif
}

/// The last `bytes` of a part.
PageBlock::Part end_of(const PageBlock::Part& part, std::int64_t bytes) {
  return {bytes, part.in_file < 0 ? part.in_file : part.in_file + part.bytes - bytes};
}

std::uint64_t next_layout() {
  static std::atomic<std::uint64_t> last = 0;
  return ++last;
}

std::atomic<bool> system_moves = true;

// Of the mappings that the system lets a process have, 65,530 by default on Linux, a quarter: others need some too.
constexpr std::int64_t kMostParts = 16'384;
std::atomic<std::int64_t> parts_there_are = 0;

}  // namespace

std::int64_t PageBlock::capacity_for(std::int64_t bytes) { return round_up(bytes, is_large(bytes) ? kPage : 4096); }

bool PageBlock::may_be_in_file() { return parts_there_are < kMostParts; }

PageBlock::PageBlock(std::int64_t bytes) {
  const std::int64_t capacity = capacity_for(bytes);
#ifdef TANDEM_MAPS_BLOCKS
  is_movable_ = is_large(capacity);
  if (is_movable_) parts_ = {{.bytes = capacity}};  // what can throw comes before there is something to give back
#endif
  start_ = static_cast<std::byte*>(map(capacity));
  if (start_ == nullptr) {
    is_movable_ = false;
    parts_.clear();
    return;
  }
  capacity_ = capacity;
  parts_there_are += std::ssize(parts_);
}

PageBlock::PageBlock(std::int64_t bytes, std::shared_ptr<PageFile> file) {
  if (!may_be_in_file()) return;
  const std::int64_t capacity = capacity_for(bytes);
  parts_ = {{.bytes = capacity}};
  const PageFile::Mapped mapped = file->map(capacity, is_large(capacity) ? kPage : 4096);
  if (mapped.start == nullptr) {
    parts_.clear();
    return;
  }
  parts_.front().in_file = mapped.range.begin;
  start_ = mapped.start;
  capacity_ = capacity;
  file_ = std::move(file);
  layout_ = next_layout();
#ifdef TANDEM_MAPS_BLOCKS
  is_movable_ = is_large(capacity);
#endif
  ++parts_there_are;
}

PageBlock::PageBlock(PageBlock&& other) noexcept { *this = std::move(other); }

PageBlock& PageBlock::operator=(PageBlock&& other) noexcept {
  if (this == &other) return *this;
  give_back();
  start_ = std::exchange(other.start_, nullptr);
  capacity_ = std::exchange(other.capacity_, 0);
  is_movable_ = std::exchange(other.is_movable_, false);
  file_ = std::exchange(other.file_, nullptr);
  parts_ = std::exchange(other.parts_, {});
  layout_ = std::exchange(other.layout_, 0);
  return *this;
}

PageBlock::~PageBlock() { give_back(); }

void PageBlock::give_back() noexcept {
  if (capacity_ > 0) unmap_from(0);
  parts_there_are -= std::ssize(parts_);
}

/// The addresses from there on, and the pages.
void PageBlock::unmap_from(std::int64_t offset) noexcept {
  if (!file_) return unmap(start_ + offset, capacity_ - offset);
  unmap_file(start_ + offset, capacity_ - offset);
  std::int64_t begin = 0;
  for (const Part& part : parts_) {
    if (begin + part.bytes > offset) give_back_in_file(end_of(part, std::min(part.bytes, begin + part.bytes - offset)));
    begin += part.bytes;
  }
}

void PageBlock::give_back_in_file(const Part& part) noexcept {
  if (part.in_file >= 0) file_->give_back({part.in_file, part.bytes});
}

/// So that one begins there.
void PageBlock::cut_part_at(std::int64_t offset) {
  std::int64_t begin = 0;
  for (auto part = parts_.begin(); part != parts_.end(); begin += (part++)->bytes) {
    if (offset <= begin || offset >= begin + part->bytes) continue;
    const Part rest = end_of(*part, begin + part->bytes - offset);
    part->bytes -= rest.bytes;
    parts_.insert(part + 1, rest);
    return;
  }
}

/// Forgets what comes after it.
void PageBlock::end_at(std::int64_t capacity, Pages pages) noexcept {
  layout_ = next_layout();
  while (capacity_ > capacity) {
    const Part end = end_of(parts_.back(), std::min(parts_.back().bytes, capacity_ - capacity));
    if (pages == Pages::gone) give_back_in_file(end);
    capacity_ -= end.bytes;
    parts_.back().bytes -= end.bytes;
    if (parts_.back().bytes > 0) continue;
    parts_.pop_back();
    --parts_there_are;
  }
}

void PageBlock::replace_parts(std::int64_t begin, std::int64_t end, const std::vector<Part>& parts) {
  layout_ = next_layout();
  parts_there_are -= std::ssize(parts_);
  cut_part_at(begin);
  cut_part_at(end);
  std::int64_t at = 0;
  auto first = parts_.begin();
  while (at < begin) at += (first++)->bytes;
  auto last = first;
  while (at < end) {
    give_back_in_file(*last);
    at += (last++)->bytes;
  }
  parts_.insert(parts_.erase(first, last), parts.begin(), parts.end());
  parts_there_are += std::ssize(parts_);
}

std::int64_t PageBlock::take_pages(PageBlock& donor, std::int64_t offset, std::int64_t bytes) {
  if (!is_movable_ || !donor.is_movable_ || !system_moves || parts_there_are > kMostParts) return 0;
  if (file_ != donor.file_) return 0;
  bytes = std::min({bytes, donor.capacity_, capacity_ - offset});
  std::vector<Part> moved;
  moved.reserve(donor.parts_.size());  // what can throw comes before the moves
  parts_.reserve(parts_.size() + donor.parts_.size() + 2);
  std::int64_t end = offset, lost = 0;
  while (end < offset + bytes && lost == 0) {
    const Part& last = donor.parts_.back();
    const Part part = end_of(last, std::min(last.bytes, offset + bytes - end));
    const std::int64_t rest = donor.capacity_ - part.bytes;
    const Move move = move_mapping(donor.start_ + rest, start_ + end, part.bytes, file_ == nullptr);
    if (move == Move::done) {
      donor.end_at(rest, Pages::elsewhere);
    } else if (!is_mapped(donor.start_ + rest, part.bytes)) {
      donor.end_at(rest, Pages::gone);
    }
    if (move == Move::refused) break;
    if (move == Move::done) {
      moved.push_back(part);
      end += part.bytes;
    } else {
      lost = part.bytes;
    }
  }
  if (!moved.empty()) replace_parts(offset, end, moved);
  if (lost > 0) {
    system_moves = false;
    give_back_end(capacity_ - end - lost);
    end_at(end, Pages::gone);
  }
  return end - offset;
}

void PageBlock::give_back_end(std::int64_t bytes) noexcept {
  if (bytes > 0) unmap_from(capacity_ - bytes);
  end_at(capacity_ - bytes, Pages::elsewhere);
}

void PageBlock::leave_file() noexcept {
  std::byte* at = start_;
  for (Part& part : parts_) {
    if (part.in_file >= 0) file_->keep_from_parent(at, {part.in_file, part.bytes});
    part.in_file = -1;
    at += part.bytes;
  }
}

}  // namespace tandem

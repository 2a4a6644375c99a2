// Elements as plain words: what copies and fills work on, whatever the dtype.
#pragma once

#include "tandem/core/dtype.h"
#include "tandem/core/strided_copy.h"

#include <cstdint>
#include <limits>

namespace tandem::cuda {

/// The widest word a thread moves at once.
struct alignas(16) Word16 {
  std::uint64_t low, high;
};

/// A loop nest over words of `word_bytes` bytes; `to` and `from` of the nest count in words.
struct WordLoop {
  detail::LoopNest nest;
  std::int64_t word_bytes;

  std::int64_t count() const {
    std::int64_t words = 1;
    for (const std::int64_t size : nest.sizes) words *= size;
    return words;
  }

  /// True if the number of words and all offsets fit 31 bits, so that indices may be 32-bit numbers.
  bool is_small() const {
    std::int64_t to = 0, from = 0;
    for (int dim = 0; dim < nest.sizes.rank(); ++dim) {
      to += (nest.sizes[dim] - 1) * nest.to[dim];
      from += (nest.sizes[dim] - 1) * nest.from[dim];
    }
    constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
    return count() <= kMost && to <= kMost && from <= kMost;
  }
};

/// The loop over elements of `element_bytes` bytes at `to` and `from`, in the widest words that alignment, sizes and
/// strides of both sides allow. Not for empty shapes.
inline WordLoop make_word_loop(const Shape& shape, const Strides& to_strides, const Strides& from_strides,
                               const void* to, const void* from, std::int64_t element_bytes) {
  WordLoop loop{detail::merge_dims(shape, to_strides, from_strides), element_bytes};
  auto& [sizes, to_steps, from_steps, empty] = loop.nest;
  if (sizes.rank() == 0) {
    sizes.push_back(1);
    to_steps.push_back(1);
    from_steps.push_back(1);
  }
  const auto start_bits = reinterpret_cast<std::uintptr_t>(to) | reinterpret_cast<std::uintptr_t>(from);
  const int last = sizes.rank() - 1;
  while (loop.word_bytes < 16 && to_steps[last] == 1 && from_steps[last] == 1 && sizes[last] % 2 == 0 &&
         start_bits % static_cast<std::uintptr_t>(2 * loop.word_bytes) == 0) {
    bool even = true;
    for (int dim = 0; dim < last; ++dim) even = even && to_steps[dim] % 2 == 0 && from_steps[dim] % 2 == 0;
    if (!even) break;
    sizes[last] /= 2;
    for (int dim = 0; dim < last; ++dim) {
      to_steps[dim] /= 2;
      from_steps[dim] /= 2;
    }
    loop.word_bytes *= 2;
  }
  return loop;
}

/// Calls `visit(TypeTag<Word>{})` with the type of words of `bytes` bytes.
template <typename Visitor>
void dispatch_word(std::int64_t bytes, Visitor&& visit) {
  switch (bytes) {
    case 1:
      return visit(TypeTag<std::uint8_t>{});
    case 2:
      return visit(TypeTag<std::uint16_t>{});
    case 4:
      return visit(TypeTag<std::uint32_t>{});
    case 8:
      return visit(TypeTag<std::uint64_t>{});
    default:
      return visit(TypeTag<Word16>{});
  }
}

}  // namespace tandem::cuda

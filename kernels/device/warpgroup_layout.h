// How the operands of products of warpgroups lie in shared memory: lines of 128 bytes, as copies of tiles swizzle them,
// and the descriptors that say so. (PTX ISA, "Asynchronous warpgroup level matrix instructions": shared memory layouts)
#pragma once

#include <cstdint>

namespace tandem::device {

/// Halves in a line; lines until the swizzle repeats; bytes of those, of which tiles begin at multiples.
constexpr int kLineHalves = 64, kLineBytes = 128, kSwizzledLines = 8, kSwizzledBytes = kSwizzledLines * kLineBytes;

/// The depth of one product.
constexpr int kProductDepth = 16;

/// Rows that one warpgroup sums up.
constexpr int kWarpgroupRows = 64;

constexpr int kWarpgroupThreads = 128;

/// How an operand's tile lies. Along depth: a line is a row (of a, or column of b) and has 64 depths. Else a line is a
/// depth and has 64 rows; further rows lie in further chunks.
enum class Lines : std::uint8_t { along_depth, along_rows };

/// Where a byte of a line lies in its tile.
constexpr int line_place(int line, int byte) {
  const int offset = line * kLineBytes + byte;
  return offset ^ (offset >> 3 & 0x70);
}

/// The descriptor of an operand that begins at an address of shared memory; chunks of 64 rows are `chunk_bytes` apart,
/// which matters along rows only.
constexpr std::uint64_t operand_descriptor(Lines lines, unsigned address, int chunk_bytes) {
  constexpr std::uint64_t kSwizzle128 = std::uint64_t{1} << 62;
  const auto in_sixteens = [](unsigned bytes) { return std::uint64_t{(bytes & 0x3ffffu) >> 4}; };
  const unsigned leading = lines == Lines::along_depth ? 16u : static_cast<unsigned>(chunk_bytes);
  return in_sixteens(address) | in_sixteens(leading) << 16 | in_sixteens(kSwizzledBytes) << 32 | kSwizzle128;
}

/// From one product's operand to that of the next 16 depths, in bytes: added to the address.
constexpr unsigned depth_step(Lines lines) {
  return lines == Lines::along_depth ? kProductDepth * 2 : kProductDepth * kLineBytes;
}

/// The same for a descriptor that has been made.
constexpr std::uint64_t advanced(std::uint64_t descriptor, unsigned bytes) { return descriptor + (bytes >> 4); }

/// The next multiple of kSwizzledBytes.
constexpr unsigned padding_to_swizzle(unsigned address) {
  return (kSwizzledBytes - address % kSwizzledBytes) % kSwizzledBytes;
}

}  // namespace tandem::device

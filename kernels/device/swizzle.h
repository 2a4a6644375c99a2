// How tiles lie in shared memory so that no two lanes that go together meet in a bank.
#pragma once

namespace tandem::device {

/// The place, counted in vectors of 16 bytes, of vector `vector` of line `line` in a tile whose lines have kVectors
/// vectors. Any eight neighbouring vectors that start at a multiple of eight, and vector p of any eight lines that
/// start at a multiple of eight, fill the 32 banks exactly once: both are what a quarter of a warp moves at once.
template <int kVectors>
constexpr int swizzled(int line, int vector) {
  static_assert(kVectors == 4 || kVectors % 8 == 0, "lines of 64 bytes, or of multiples of 128");
  const int turn = kVectors == 4 ? line / 2 % 4 : line % 8;
  return line * kVectors + (vector ^ turn);
}

/// The same for lanes that meet four lines, from a multiple of four on, by two neighbouring vectors, from an even one
/// on: the numbers of a 32-bit operand that is transposed, and the sums of an instruction as 32-bit numbers.
template <int kVectors>
constexpr int swizzled_by_twos(int line, int vector) {
  static_assert(kVectors % 8 == 0, "lines of multiples of 128 bytes");
  return line * kVectors + (vector ^ line % 4 * 2);
}

}  // namespace tandem::device

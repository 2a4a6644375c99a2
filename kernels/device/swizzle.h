// How tiles lie in shared memory so that no two lanes that go together meet in a bank.
#pragma once

namespace tandem::device {

/// The place, counted in pieces of 16 bytes, of piece `piece` of line `line` in a tile whose lines have kPieces pieces.
/// Any eight neighbouring pieces that start at a multiple of eight, and piece p of any eight lines that start at a
/// multiple of eight, fill the 32 banks exactly once: both are what a quarter of a warp moves at once.
template <int kPieces>
constexpr int swizzled(int line, int piece) {
  static_assert(kPieces == 4 || kPieces % 8 == 0, "lines of 64 bytes, or of multiples of 128");
  const int turn = kPieces == 4 ? line / 2 % 4 : line % 8;
  return line * kPieces + (piece ^ turn);
}

/// The same for lanes that meet four lines, from a multiple of four on, by two neighbouring pieces, from an even one
/// on: the numbers of a 32-bit operand that is turned, and the sums of an instruction as 32-bit numbers.
template <int kPieces>
constexpr int swizzled_by_twos(int line, int piece) {
  static_assert(kPieces % 8 == 0, "lines of multiples of 128 bytes");
  return line * kPieces + (piece ^ line % 4 * 2);
}

}  // namespace tandem::device

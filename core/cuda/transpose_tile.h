// The tile of a matrix that a transpose takes through shared memory, in the shape that fits the matrix.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

namespace tandem::cuda {

/// The length of one side of a tile, 1 to 1024.
class TileSide {
 public:
  explicit TileSide(unsigned size) : size_(size), factor_((1u << kShift) / size + 1) {}

  __host__ __device__ unsigned size() const { return size_; }

  /// number / size, without a division; leaves the remainder in `number`. For numbers up to 1024.
  __device__ unsigned split(unsigned& number) const {
    const unsigned quotient = number * factor_ >> kShift;
    number -= quotient * size_;
    return quotient;
  }

 private:
  static constexpr unsigned kShift = 21;
  unsigned size_, factor_;
};

/// `rows` are neighbours in the source, `columns` in the destination. Where the matrix is narrow, so is the tile: what
/// warps read and write then still are whole runs of 32 words.
struct TransposeTile {
  static constexpr unsigned kWords = 1024, kRun = 32;
  static constexpr unsigned kCapacity = 2 * kWords;  // with what pads the lines

  TileSide columns, rows;
  unsigned column_pitch, row_pitch;  // in shared memory

  /// `words_per_bank`: how many words share a bank of shared memory.
  TransposeTile(std::int64_t matrix_columns, std::int64_t matrix_rows, unsigned words_per_bank)
      : columns(side(matrix_columns, matrix_rows, matrix_columns <= matrix_rows)),
        rows(side(matrix_rows, matrix_columns, matrix_columns > matrix_rows)) {
    const bool tall = matrix_columns <= matrix_rows;
    const unsigned lines = tall ? columns.size() : rows.size(), length = tall ? rows.size() : columns.size();
    const unsigned pitch = (length + padding(lines)) * words_per_bank;
    column_pitch = tall ? pitch : 1;
    row_pitch = tall ? 1 : pitch;
  }

  __device__ unsigned words() const { return columns.size() * rows.size(); }
  __device__ unsigned place(unsigned column, unsigned row) const { return column * column_pitch + row * row_pitch; }

 private:
  /// What keeps the n-th words of 32 / lines neighbouring n of all lines in different banks: word (line, n) is number
  /// n * lines + line of its warp, and a pitch of the inverse of an odd number of lines, modulo 32, makes banks follow
  /// those numbers. (Where the number is even but no power of two, two words may meet in a bank.)
  static unsigned padding(unsigned lines) {
    if (lines % 2 == 0) return (kRun + lines - 1) / lines;
    return lines * (2 - lines * lines) % kRun;
  }

  static unsigned side(std::int64_t size, std::int64_t other, bool narrow) {
    if (narrow) return static_cast<unsigned>(std::min<std::int64_t>(size, kRun));
    const std::int64_t fits = kWords / std::min<std::int64_t>(other, kRun) / kRun * kRun;
    return static_cast<unsigned>(std::min(fits, (size + kRun - 1) / kRun * kRun));
  }
};

}  // namespace tandem::cuda

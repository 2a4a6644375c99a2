// Sizes and strides of tensors: small fixed-capacity vectors, so that making a view allocates nothing.
// Example:
//     const Shape shape{8, 3, 32, 16};
//     const std::int64_t width = shape[-1];                                 // 16
//     const std::int64_t count = element_count(shape);                      // 12288
//     const Strides strides = dense_strides(shape, Layout::channels_last);  // [1536, 1, 48, 3]
#pragma once

#include "tandem/core/error.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <utility>

namespace tandem {

/// The most dimensions of a tensor.
constexpr int kMaxRank = 8;

/// Up to kMaxRank signed 64-bit numbers: one per dimension. What they mean is part of the type, so that sizes and
/// strides cannot be taken for each other.
template <typename Meaning>
class DimList {
 public:
  DimList() = default;
  /// Throws Error for more than kMaxRank values.
  /// @{
  DimList(std::initializer_list<std::int64_t> values) : DimList(std::span(values.begin(), values.size())) {}
  explicit DimList(std::span<const std::int64_t> values) {
    require(values.size() <= kMaxRank, "a tensor has at most {} dimensions, got {}", kMaxRank, values.size());
    rank_ = static_cast<int>(values.size());
    std::copy(values.begin(), values.end(), values_.begin());
  }
  /// @}

  /// Zeros, one per dimension. Throws Error unless `rank` is from 0 to kMaxRank.
  static DimList zeros(int rank) {
    require(rank >= 0 && rank <= kMaxRank, "a tensor has at most {} dimensions, got {}", kMaxRank, rank);
    DimList list;
    list.rank_ = rank;
    return list;
  }

  /// How many values there are.
  int rank() const { return rank_; }
  /// True of the list without values, which is the shape of a single number.
  bool empty() const { return rank_ == 0; }

  /// The value of a dimension; negative ones count from the end, as in PyTorch. Throws Error as wrap().
  std::int64_t operator[](int dim) const { return values_[static_cast<std::size_t>(wrap(dim))]; }
  std::int64_t& operator[](int dim) { return values_[static_cast<std::size_t>(wrap(dim))]; }

  /// `dim` as a number in [0, rank). Throws Error if it is not in [-rank, rank).
  int wrap(int dim) const {
    require(dim >= -rank_ && dim < rank_, "dimension {} is out of range for a tensor of rank {}", dim, rank_);
    return dim < 0 ? dim + rank_ : dim;
  }

  /// Adds a value behind the others. Throws Error where there are kMaxRank.
  void push_back(std::int64_t value) {
    require(rank_ < kMaxRank, "a tensor has at most {} dimensions", kMaxRank);
    values_[static_cast<std::size_t>(rank_++)] = value;
  }

  /// The values in order, for loops.
  /// @{
  const std::int64_t* begin() const { return values_.data(); }
  const std::int64_t* end() const { return values_.data() + rank_; }
  /// @}

  /// As many values, and the same ones.
  friend bool operator==(const DimList& a, const DimList& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }

 private:
  std::array<std::int64_t, kMaxRank> values_{};
  int rank_ = 0;
};

/// Sizes, in elements.
using Shape = DimList<struct ShapeMeaning>;
/// Distances between neighbours, in elements.
using Strides = DimList<struct StridesMeaning>;

/// How the elements of a dense tensor follow each other in memory. `channels_last` stores a 4-D N,C,H,W tensor as
/// NHWC (and weights K,C,R,S as KRSC); for other ranks it means row_major.
enum class Layout : std::uint8_t { row_major, channels_last };

/// Number of elements; 1 for rank 0. Throws Error for a negative size, and for more elements than 63 bits can count.
std::int64_t element_count(const Shape& shape);

/// Strides, in elements, of a dense tensor of this shape; sizes of 0 count as 1.
Strides dense_strides(const Shape& shape, Layout layout);

/// Numbers of dimensions, in some order.
using DimOrder = std::array<int, kMaxRank>;

/// Sorts the first `count` entries in place, stably: for at most kMaxRank entries an insertion sort is the quickest.
template <typename Less>
void sort_dims(DimOrder& order, int count, Less&& less) {
  for (int i = 1; i < count && i < kMaxRank; ++i) {
    for (int j = i; j > 0 && less(order[static_cast<std::size_t>(j)], order[static_cast<std::size_t>(j - 1)]); --j) {
      std::swap(order[static_cast<std::size_t>(j)], order[static_cast<std::size_t>(j - 1)]);
    }
  }
}

/// "[2, 3, 32, 32]"
std::string to_string(const Shape& shape);
/// The same of strides, in elements.
std::string to_string(const Strides& strides);

}  // namespace tandem

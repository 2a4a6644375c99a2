// Loop nests over several strided operands of one shape, dimensions merged: the host's side.
#pragma once

#include "tandem/core/shape.h"

#include <array>
#include <cstdint>
#include <limits>

namespace tandem::device {

/// A nest as a kernel takes it (see offsets_of in nest_offsets.h), innermost dimension first. Indices are 32-bit
/// numbers, because dividing those is cheap; offsets may be any.
template <int kOperands>
struct Nest {
  std::int64_t steps[kOperands][kMaxRank] = {};
  unsigned sizes[kMaxRank] = {};
  unsigned count = 1;
  int rank = 0;
};

/// The dimensions that operands really have: without sizes of 1, ordered by the steps of operand 0, and merged where
/// all operands allow it. Outermost first. Not for empty shapes.
template <int kOperands>
class HostNest {
 public:
  HostNest(const Shape& shape, const std::array<Strides, kOperands>& strides) {
    DimOrder order{};
    int rank = 0;
    for (int dim = 0; dim < shape.rank(); ++dim) {
      if (shape[dim] != 1) order[static_cast<std::size_t>(rank++)] = dim;
    }
    sort_dims(order, rank, [&](int a, int b) { return strides[0][a] > strides[0][b]; });
    for (int i = 0; i < rank; ++i) append(shape, strides, order[static_cast<std::size_t>(i)]);
  }

  const Shape& sizes() const { return sizes_; }
  const Strides& steps(int operand) const { return steps_[static_cast<std::size_t>(operand)]; }
  std::int64_t count() const { return element_count(sizes_); }

  /// The distance between neighbours in the innermost dimension; 1 where there is but one element.
  std::int64_t inner_step(int operand) const { return sizes_.empty() ? 1 : steps(operand)[-1]; }

  /// True if the elements of all operands follow each other in the same order, without gaps.
  bool is_dense() const {
    for (int k = 0; k < kOperands; ++k) {
      if (inner_step(k) != 1) return false;
    }
    return sizes_.rank() <= 1;
  }

  /// Calls `visit(Nest, starts)` for nests of at most `most` elements that together cover every element once; their
  /// offsets count from `starts`, one per operand.
  template <typename Visit>
  void for_each_part(Visit&& visit, std::int64_t most = std::numeric_limits<std::int32_t>::max()) const {
    HostNest rest = *this;
    rest.visit_parts(std::array<std::int64_t, kOperands>{}, most, visit);
  }

 private:
  void append(const Shape& shape, const std::array<Strides, kOperands>& strides, int dim) {
    bool merges = !sizes_.empty();
    for (std::size_t k = 0; k < kOperands && merges; ++k) merges = steps_[k][-1] == shape[dim] * strides[k][dim];
    if (merges) {
      sizes_[-1] *= shape[dim];
      for (std::size_t k = 0; k < kOperands; ++k) steps_[k][-1] = strides[k][dim];
      return;
    }
    sizes_.push_back(shape[dim]);
    for (std::size_t k = 0; k < kOperands; ++k) steps_[k].push_back(strides[k][dim]);
  }

  template <typename Visit>
  void visit_parts(const std::array<std::int64_t, kOperands>& starts, std::int64_t most, Visit&& visit) {
    if (count() <= most) return visit(for_kernel(), starts);
    int widest = 0;
    for (int dim = 1; dim < sizes_.rank(); ++dim) {
      if (sizes_[dim] > sizes_[widest]) widest = dim;
    }
    const std::int64_t half = sizes_[widest] / 2;
    HostNest front = *this, back = *this;
    front.sizes_[widest] = half;
    back.sizes_[widest] -= half;
    std::array<std::int64_t, kOperands> back_starts = starts;
    for (std::size_t k = 0; k < kOperands; ++k) back_starts[k] += half * steps_[k][widest];
    front.visit_parts(starts, most, visit);
    back.visit_parts(back_starts, most, visit);
  }

  Nest<kOperands> for_kernel() const {
    Nest<kOperands> nest;
    nest.count = static_cast<unsigned>(count());
    nest.rank = sizes_.rank();
    for (int dim = 0; dim < nest.rank; ++dim) {
      nest.sizes[dim] = static_cast<unsigned>(sizes_[-1 - dim]);
      for (int k = 0; k < kOperands; ++k) nest.steps[k][dim] = steps(k)[-1 - dim];
    }
    return nest;
  }

  Shape sizes_;
  std::array<Strides, kOperands> steps_;
};

}  // namespace tandem::device

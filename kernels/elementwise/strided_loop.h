// Walking N strided operands of one shape together: the engine of element-wise kernels and of reductions on the CPU.
#pragma once

#include "tandem/core/parallel.h"
#include "tandem/core/tensor.h"

#include <algorithm>
#include <array>
#include <span>

namespace tandem::kernels {

/// Sorts dimensions by their strides, the largest first; those of one stride keep their order.
void sort_by_strides(std::span<int> dimensions, const Strides& strides);

/// The loop nest over a shape, dimensions ordered by the strides of operand 0 and merged where all operands allow it.
/// Strides of 0 (expanded operands) are welcome.
template <std::size_t N>
class StridedLoop {
 public:
  using Offsets = std::array<std::int64_t, N>;

  StridedLoop(const Shape& shape, const std::array<Strides, N>& strides) {
    std::array<int, kMaxRank> order{};
    std::size_t rank = 0;
    for (int dim = 0; dim < shape.rank(); ++dim) {
      if (shape[dim] == 0) length_ = 0;
      if (shape[dim] != 1) order[rank++] = dim;
    }
    if (length_ == 0) return;
    sort_by_strides(std::span(order).first(rank), strides[0]);
    for (std::size_t i = 0; i < rank; ++i) append(shape[order[i]], order[i], strides);
    if (levels_ > 0) {
      --levels_;
      length_ = sizes_[levels_];
      inner_ = steps_[levels_];
    } else {
      inner_.fill(1);
    }
    for (std::size_t level = 0; level < levels_; ++level) runs_ *= sizes_[level];
  }

  /// Number of runs of length() elements each; together they cover every element once.
  std::int64_t runs() const { return length_ == 0 ? 0 : runs_; }
  std::int64_t length() const { return length_; }
  /// Distance between neighbours of a run, for each operand.
  const Offsets& inner_strides() const { return inner_; }

  /// Calls `run(offsets)` with where each operand's run starts, for the runs [begin, end).
  template <typename Run>
  void for_runs(std::int64_t begin, std::int64_t end, Run&& run) const {
    if (begin >= end) return;
    std::array<std::int64_t, kMaxRank> index{};
    Offsets offsets{};
    std::int64_t rest = begin;
    for (std::size_t level = levels_; level-- > 0;) {
      index[level] = rest % sizes_[level];
      rest /= sizes_[level];
      for (std::size_t n = 0; n < N; ++n) offsets[n] += index[level] * steps_[level][n];
    }
    for (std::int64_t i = begin; i < end; ++i) {
      run(offsets);
      for (std::size_t level = levels_; level-- > 0;) {
        for (std::size_t n = 0; n < N; ++n) offsets[n] += steps_[level][n];
        if (++index[level] < sizes_[level]) break;
        for (std::size_t n = 0; n < N; ++n) offsets[n] -= steps_[level][n] * sizes_[level];
        index[level] = 0;
      }
    }
  }

  /// Calls `run(offsets, length)` for every run, shared out over threads; long runs are cut up.
  template <typename Run>
  void parallel_runs(Run&& run) const {
    constexpr std::int64_t kGrain = std::int64_t{1} << 14;
    if (runs() == 1) {
      parallel_for(length_, kGrain, [&](std::int64_t begin, std::int64_t end) {
        Offsets offsets{};
        for (std::size_t n = 0; n < N; ++n) offsets[n] = begin * inner_[n];
        run(offsets, end - begin);
      });
      return;
    }
    parallel_for(runs(), std::max<std::int64_t>(1, kGrain / std::max<std::int64_t>(length_, 1)),
                 [&](std::int64_t begin, std::int64_t end) {
                   for_runs(begin, end, [&](const Offsets& offsets) { run(offsets, length_); });
                 });
  }

 private:
  void append(std::int64_t size, int dim, const std::array<Strides, N>& strides) {
    Offsets steps{};
    for (std::size_t n = 0; n < N; ++n) steps[n] = strides[n][dim];
    bool merges = levels_ > 0;
    for (std::size_t n = 0; n < N && merges; ++n) merges = steps_[levels_ - 1][n] == steps[n] * size;
    if (merges) {
      sizes_[levels_ - 1] *= size;
      steps_[levels_ - 1] = steps;
      return;
    }
    sizes_[levels_] = size;
    steps_[levels_++] = steps;
  }

  std::array<std::int64_t, kMaxRank> sizes_{};  // outermost first; the last is the run
  std::array<Offsets, kMaxRank> steps_{};
  std::size_t levels_ = 0;
  std::int64_t runs_ = 1;
  std::int64_t length_ = 1;
  Offsets inner_{};
};

}  // namespace tandem::kernels

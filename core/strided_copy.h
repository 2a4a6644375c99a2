// Walking two strided tensors of one shape together: the dimensions that copies and fills really have.
#pragma once

#include "tandem/core/shape.h"

#include <cstdint>
#include <optional>
#include <utility>

namespace tandem::detail {

/// The loop nest over two strided tensors of one shape, outermost dimension first: without sizes of 1, ordered by
/// destination stride, and merged where both sides allow it. `empty` if there is nothing to do.
struct LoopNest {
  Shape sizes;
  Strides to, from;
  bool empty = false;
};

inline LoopNest merge_dims(const Shape& shape, const Strides& destination, const Strides& source) {
  LoopNest nest;
  DimOrder order{};
  int rank = 0;
  for (int dim = 0; dim < shape.rank(); ++dim) {
    if (shape[dim] == 0) nest.empty = true;
    if (shape[dim] != 1) order[static_cast<std::size_t>(rank++)] = dim;
  }
  if (nest.empty) return nest;
  sort_dims(order, rank, [&](int a, int b) {
    return destination[a] != destination[b] ? destination[a] > destination[b] : source[a] > source[b];
  });
  auto& [sizes, to, from, empty] = nest;
  for (int i = 0; i < rank; ++i) {
    const int dim = order[static_cast<std::size_t>(i)];
    if (sizes.rank() > 0 && to[-1] == shape[dim] * destination[dim] && from[-1] == shape[dim] * source[dim]) {
      sizes[-1] *= shape[dim];
      to[-1] = destination[dim];
      from[-1] = source[dim];
      continue;
    }
    sizes.push_back(shape[dim]);
    to.push_back(destination[dim]);
    from.push_back(source[dim]);
  }
  return nest;
}

/// The dimension that is dense at the source, where the innermost one is so at the destination alone: copying runs of
/// the latter would read a cache line for each element.
inline std::optional<int> dim_to_transpose(const LoopNest& nest) {
  const int inner = nest.sizes.rank() - 1;
  if (nest.empty || inner < 1 || nest.to[inner] != 1 || nest.from[inner] <= 1) return std::nullopt;
  for (int dim = 0; dim < inner; ++dim) {
    if (nest.from[dim] == 1) return dim;
  }
  return std::nullopt;
}

/// Calls `run(destination_offset, source_offset, length, destination_stride, source_stride)` for runs that together
/// cover every element once.
template <typename Run>
void for_each_run(const LoopNest& nest, Run&& run) {
  if (nest.empty) return;
  const auto& [sizes, to, from, empty] = nest;
  if (sizes.rank() == 0)
    return run(std::int64_t{0}, std::int64_t{0}, std::int64_t{1}, std::int64_t{1}, std::int64_t{1});
  const int outer = sizes.rank() - 1;
  Shape index = sizes;
  for (int dim = 0; dim < outer; ++dim) index[dim] = 0;
  std::int64_t to_offset = 0, from_offset = 0;
  while (true) {
    run(to_offset, from_offset, sizes[outer], to[outer], from[outer]);
    int dim = outer - 1;
    for (; dim >= 0; --dim) {
      to_offset += to[dim];
      from_offset += from[dim];
      if (++index[dim] < sizes[dim]) break;
      to_offset -= to[dim] * sizes[dim];
      from_offset -= from[dim] * sizes[dim];
      index[dim] = 0;
    }
    if (dim < 0) return;
  }
}

template <typename Run>
void for_each_run(const Shape& shape, const Strides& destination, const Strides& source, Run&& run) {
  for_each_run(merge_dims(shape, destination, source), std::forward<Run>(run));
}

}  // namespace tandem::detail

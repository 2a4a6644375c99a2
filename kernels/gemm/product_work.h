// What a matrix product is on a timeline, and for who counts.
#pragma once

#include "tandem/core/dtype.h"
#include "tandem/core/timeline.h"

#include <cstdint>

namespace tandem::kernels {

/// `count` products [m, k] x [k, n]: their operations, and the least that they move, each matrix once.
inline void note_products(std::int64_t count, std::int64_t m, std::int64_t n, std::int64_t k, DType dtype) {
  if (!work_is_counted()) return;
  const double products = static_cast<double>(count), rows = static_cast<double>(m), columns = static_cast<double>(n);
  const double depth = static_cast<double>(k), size = static_cast<double>(size_of(dtype));
  add_work(products * 2.0 * rows * columns * depth,
           products * size * (rows * depth + depth * columns + rows * columns));
}

}  // namespace tandem::kernels

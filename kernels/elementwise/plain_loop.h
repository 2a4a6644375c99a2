// Element offsets the plain way, for references: row-major index -> offset under any strides.
#pragma once

#include "tandem/core/shape.h"

namespace tandem::kernels::reference {

/// Offset of the `index`-th element, counted in row-major order of `shape`.
inline std::int64_t offset_of(std::int64_t index, const Shape& shape, const Strides& strides) {
  std::int64_t offset = 0;
  for (int dim = shape.rank() - 1; dim >= 0; --dim) {
    offset += index % shape[dim] * strides[dim];
    index /= shape[dim];
  }
  return offset;
}

}  // namespace tandem::kernels::reference

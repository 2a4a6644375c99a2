// The leading dimensions of batched matrix products: which of them are one larger product, and how to walk the others.
#pragma once

#include "tandem/core/out.h"

namespace tandem::kernels {

/// Matrices with the same leading dimensions; a and b may repeat theirs by strides of 0.
struct Batches {
  Tensor a, b;  // [..., M, K], [..., K, N]
  Out c;        // [..., M, N], columns adjacent
};

/// The same products with as few leading dimensions as possible. Where one matrix of b serves several of a whose rows
/// follow each other, these become one matrix: [B, M, K] [K, N] is [B * M, K] [K, N]. Where c has one column, that is
/// done for b by way of c^T = b^T a^T. Neighbouring dimensions that are left are merged where all three allow it.
/// a and b have the leading dimensions of c, which is dense and row-major; nothing is empty.
Batches merge_batches(const Tensor& a, const Tensor& b, const Out& c);

/// How many matrices there are.
std::int64_t matrix_count(const Tensor& matrices);

/// Where a matrix begins, in elements from the first, by its number in row-major order of the leading dimensions.
std::int64_t matrix_offset(const Tensor& matrices, std::int64_t number);

/// That matrix: a view.
Tensor matrix_at(const Tensor& matrices, std::int64_t number);

}  // namespace tandem::kernels

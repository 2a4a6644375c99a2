// Sums over the rows of a matrix on the GPU: the gradients of biases.
#pragma once

#include "tandem/core/out.h"

#include <cstdint>

namespace tandem::kernels::cuda {

/// sums[columns] = sum over `rows` rows of `values`, dense with adjacent columns. Elements count where `gate` is open:
/// a tensor like `values` that is open where positive, or u8 bits in the order of `values`, or undefined. Added in an
/// order that depends on the sizes alone.
void column_sum(std::int64_t rows, std::int64_t columns, const Tensor& values, const Tensor& gate, const Out& sums);

/// The same for f32 parts [rows, columns] of sums of another dtype, which are rounded once.
void column_sum_of_parts(const Tensor& parts, const Out& sums);

}  // namespace tandem::kernels::cuda

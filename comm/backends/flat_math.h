// Arithmetic on flat memory that reductions need.
#pragma once

#include "tandem/comm/backends/backend.h"
#include "tandem/core/tensor.h"

namespace tandem::comm {

/// into[i] = into[i] op from[i], or from[i] op into[i], which differ in the signs of zeros and in NaN; `average` adds.
/// f64, f32, i64 and i32. min and max pass NaN on.
void reduce_into(void* into, const void* from, std::int64_t count, DType dtype, ReduceOp op, bool from_is_left = false);

/// data[i] /= divisor: the last part of `average`. f64 and f32.
void divide(void* data, std::int64_t count, DType dtype, int divisor);

/// Multiplies the elements of a dense floating tensor, on any device.
void scale(const Tensor& tensor, double factor);

/// Half types to float and back, to nearest even.
void half_to_float(const void* from, DType from_dtype, float* to, std::int64_t count);
void float_to_half(const float* from, void* to, DType to_dtype, std::int64_t count);

}  // namespace tandem::comm

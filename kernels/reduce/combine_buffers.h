// Elements of several buffers of GPU memory, combined: what a reduction over ranks does whose GPUs see each other.
#pragma once

#include "tandem/core/dtype.h"
#include "tandem/core/stream.h"

#include <cstdint>

namespace tandem::kernels {

/// How two elements become one. min and max pass NaN on; sums and products of whole numbers wrap around.
enum class Combination : std::uint8_t { sum, product, min, max };

/// Which elements, of which buffers.
struct BufferRange {
  const void* const* buffers = nullptr;  ///< in device memory: where each buffer begins, at multiples of 16 bytes
  int buffer_count = 0;                  ///< at least 1
  std::int64_t begin = 0;                ///< bytes from there, a multiple of the element's size
  std::int64_t count = 0;                ///< elements of each
  DType dtype = DType::f32;              ///< any but u8
};

namespace cuda {

/// output[i] = (buffer 0's element i, combined with that of buffer 1, ...) / divisor, by `stream`, which is one of a
/// CUDA device: in the order of the buffers, in the compute type (f32 for the half types), rounded once. `divisor` must
/// be 1 for whole numbers. `output` overlaps no buffer. Throws Error for u8. In builds with CUDA only.
void combine_buffers(const Stream& stream, const BufferRange& range, Combination combination, double divisor,
                     void* output);

}  // namespace cuda

}  // namespace tandem::kernels

// Where an element of an image stands.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace tandem::kernels::cuda::naive {

/// Element number `i` in memory of images [rows, columns, channels].
struct Position {
  std::int64_t image, row, column, channel;

  __device__ Position(std::int64_t i, std::int64_t rows, std::int64_t columns, std::int64_t channels) {
    channel = i % channels;
    i /= channels;
    column = i % columns;
    i /= columns;
    row = i % rows;
    image = i / rows;
  }
};

}  // namespace tandem::kernels::cuda::naive

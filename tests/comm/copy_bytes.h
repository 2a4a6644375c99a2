// Copies by address, as a library does them, in the order of a stream.
#pragma once

#include "tandem/core/has_cuda.h"
#include "tandem/core/stream.h"

#include <cstring>

namespace tandem::test {

namespace cuda {
void copy_bytes(const Stream& stream, void* to, const void* from, std::int64_t bytes);
}

/// Between two addresses of the stream's device.
inline void copy_bytes(const Stream& stream, void* to, const void* from, std::int64_t bytes) {
  if constexpr (kHasCuda) {
    if (stream.device().type == DeviceType::cuda) return cuda::copy_bytes(stream, to, from, bytes);
  }
  std::memcpy(to, from, static_cast<std::size_t>(bytes));
}

}  // namespace tandem::test

// A 64-bit hash of bytes, for finding replicas that differ: XXH3 (xxhash.com). Not cryptographic.
#pragma once

#include "tandem/core/tensor.h"

#include <cstddef>
#include <cstdint>

namespace tandem::comm {

/// XXH3's 64 bits of `bytes` bytes; `data` may be null where there are none.
std::uint64_t hash_bytes(const void* data, std::size_t bytes);

/// The elements of a tensor as bytes, in row-major order, with dtype and shape.
std::uint64_t hash_tensor(const Tensor& tensor);

}  // namespace tandem::comm

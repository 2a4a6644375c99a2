// A 64-bit hash of bytes, for finding replicas that differ. Not cryptographic.
#pragma once

#include "core/tensor.h"

#include <cstddef>
#include <cstdint>

namespace tandem::comm {

/// Made of xxHash64's steps (Collet; github.com/Cyan4973/xxHash), but not that hash: its round takes 64-bit words in
/// four lanes, for speed, its last step mixes the sum of them. Every step is a bijection of its lane for a given word
/// and of the word for a given lane, so a change within a single word always changes the hash.
std::uint64_t hash_bytes(const void* data, std::size_t bytes);

/// The elements of a tensor as bytes, in row-major order, with dtype and shape.
std::uint64_t hash_tensor(const Tensor& tensor);

}  // namespace tandem::comm

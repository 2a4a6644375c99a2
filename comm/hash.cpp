// FNV-1a over words.
#include "comm/hash.h"

#include <array>
#include <bit>
#include <cstring>

namespace tandem::comm {

namespace {

constexpr std::uint64_t kBasis = 0xcbf29ce484222325u;
constexpr std::uint64_t kPrime = 0x100000001b3u;

/// The rotation carries what multiplication moved up back into the low bits.
constexpr std::uint64_t mix(std::uint64_t state, std::uint64_t word) { return std::rotl((state ^ word) * kPrime, 29); }

}  // namespace

std::uint64_t hash_bytes(const void* data, std::size_t bytes) {
  const auto* at = static_cast<const std::byte*>(data);
  std::array<std::uint64_t, 4> lanes{kBasis, kBasis + 1, kBasis + 2, kBasis + 3};
  std::size_t left = bytes;
  for (; left >= 32; left -= 32, at += 32) {
    std::array<std::uint64_t, 4> words;
    std::memcpy(words.data(), at, 32);
    for (std::size_t lane = 0; lane < 4; ++lane) lanes[lane] = mix(lanes[lane], words[lane]);
  }
  std::uint64_t hash = mix(kBasis, bytes);
  for (const std::uint64_t lane : lanes) hash = mix(hash, lane);
  while (left > 0) {
    std::uint64_t word = 0;
    const std::size_t count = left < 8 ? left : 8;
    std::memcpy(&word, at, count);
    hash = mix(hash, word);
    at += count;
    left -= count;
  }
  return hash ^ (hash >> 32);
}

std::uint64_t hash_tensor(const Tensor& tensor) {
  const Tensor dense = tensor.contiguous();
  const std::string description = describe(tensor);
  const auto bytes = static_cast<std::size_t>(dense.numel() * size_of(dense.dtype()));
  return mix(hash_bytes(description.data(), description.size()),
             hash_bytes(bytes > 0 ? dense.raw_data() : nullptr, bytes));
}

}  // namespace tandem::comm

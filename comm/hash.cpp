// A hash over words, in four lanes.
#include "comm/hash.h"

#include <array>
#include <bit>
#include <cstring>

namespace tandem::comm {

namespace {

constexpr std::uint64_t kPrime1 = 0x9e3779b185ebca87u;
constexpr std::uint64_t kPrime2 = 0xc2b2ae3d27d4eb4fu;
constexpr std::uint64_t kPrime3 = 0x165667b19e3779f9u;

/// xxHash64's round: for a fixed state a bijection of the word, and for a fixed word one of the state.
constexpr std::uint64_t mix(std::uint64_t state, std::uint64_t word) {
  return std::rotl(state + word * kPrime2, 31) * kPrime1;
}

/// xxHash64's last step: every bit of the state reaches every bit of the result.
constexpr std::uint64_t avalanche(std::uint64_t state) {
  state = (state ^ (state >> 33)) * kPrime2;
  state = (state ^ (state >> 29)) * kPrime3;
  return state ^ (state >> 32);
}

}  // namespace

std::uint64_t hash_bytes(const void* data, std::size_t bytes) {
  const auto* at = static_cast<const std::byte*>(data);
  std::array<std::uint64_t, 4> lanes{kPrime1, kPrime2, kPrime3, kPrime1 ^ kPrime2};
  std::size_t left = bytes;
  for (; left >= 32; left -= 32, at += 32) {
    std::array<std::uint64_t, 4> words;
    std::memcpy(words.data(), at, 32);
    for (std::size_t lane = 0; lane < 4; ++lane) lanes[lane] = mix(lanes[lane], words[lane]);
  }
  std::uint64_t hash = mix(kPrime3, bytes);
  for (const std::uint64_t lane : lanes) hash = mix(hash, lane);
  while (left > 0) {
    std::uint64_t word = 0;
    const std::size_t count = left < 8 ? left : 8;
    std::memcpy(&word, at, count);
    hash = mix(hash, word);
    at += count;
    left -= count;
  }
  return avalanche(hash);
}

std::uint64_t hash_tensor(const Tensor& tensor) {
  const Tensor dense = tensor.detach().to(Device{}).contiguous();
  const std::string description = describe(tensor);
  const auto bytes = static_cast<std::size_t>(dense.numel() * size_of(dense.dtype()));
  return mix(hash_bytes(description.data(), description.size()),
             hash_bytes(bytes > 0 ? dense.raw_data() : nullptr, bytes));
}

}  // namespace tandem::comm

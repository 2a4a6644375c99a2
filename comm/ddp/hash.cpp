#include "tandem/comm/ddp/hash.h"

#include <xxhash.h>

namespace tandem::comm {

std::uint64_t hash_bytes(const void* data, std::size_t bytes) { return XXH3_64bits(data, bytes); }

std::uint64_t hash_tensor(const Tensor& tensor) {
  const Tensor dense = tensor.detach().to(Device{}).contiguous();
  const std::string description = describe(tensor);
  const auto bytes = static_cast<std::size_t>(dense.numel() * size_of(dense.dtype()));
  return XXH3_64bits_withSeed(bytes > 0 ? dense.raw_data() : nullptr, bytes,
                              hash_bytes(description.data(), description.size()));
}

}  // namespace tandem::comm

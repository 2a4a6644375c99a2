// Which segments there are, and what lies in them.
#include "tandem/comm/backends/native/shared_parts.h"

#include "tandem/core/error.h"

#include <algorithm>
#include <functional>

namespace tandem::comm {

std::int64_t SharedParts::part_bytes(std::int64_t bytes) { return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes; }

std::shared_ptr<Storage> SharedParts::add(const std::shared_ptr<SharedMemory>& memory, std::int64_t bytes) {
  std::erase_if(segments_, [](const Segment& old) { return old.memory.expired(); });
  segments_.push_back({++made_, memory, memory->data(), part_bytes(bytes)});
  return std::make_shared<Storage>(part(made_, rank_), bytes, MemoryTag::comm, memory);
}

SharedParts::Place SharedParts::find(const void* data, std::int64_t bytes) {
  const auto* const begin = static_cast<const std::byte*>(data);
  for (const Segment& one : segments_) {
    const std::byte* const part = one.data + rank_ * one.part_bytes;
    const bool begins_inside = !std::less<>()(begin, part) && std::less<>()(begin, part + one.part_bytes);
    if (begins_inside && begin - part + bytes <= one.part_bytes && !one.memory.expired())
      return {one.number, begin - part};
  }
  return {};
}

const SharedParts::Segment& SharedParts::segment(std::int32_t number) const {
  const auto found = std::ranges::find(segments_, number, &Segment::number);
  require(found != segments_.end(), "shared memory: segment {} is gone", number);
  return *found;
}

std::shared_ptr<SharedMemory> SharedParts::memory(std::int32_t number) const { return segment(number).memory.lock(); }

std::byte* SharedParts::part(std::int32_t number, int rank) const {
  const Segment& one = segment(number);
  return one.data + rank * one.part_bytes;
}

}  // namespace tandem::comm

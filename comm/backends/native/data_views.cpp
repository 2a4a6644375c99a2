// Segments, blocks and addresses.
#include "tandem/comm/backends/native/data_views.h"

#include "tandem/core/cpu_allocator.h"

#include <utility>

namespace tandem::comm {

DataPlace DataViews::place_of(const void* data, std::int64_t bytes, CpuAllocator::BlockInFile& block) {
  using Kind = DataPlace::Kind;
  DataPlace place{.address = reinterpret_cast<std::uintptr_t>(data)};
  if (uses_addresses_) {
    place.kind = Kind::address;
  } else if (const auto [segment, offset] = parts_.find(data, bytes); segment != 0) {
    place.kind = Kind::segment;
    place.segment = segment;
    place.offset = offset;
  } else if (const auto found = blocks_ ? cpu_allocator().find_shared(data, bytes) : std::nullopt) {
    place.kind = Kind::block;
    place.layout = found->layout;
    place.offset = found->offset;
    block = found->block;
  }
  return place;
}

std::byte* DataViews::view(int rank, const DataPlace& place, const CpuAllocator::BlockInFile& block) const {
  if (place.kind == DataPlace::Kind::hidden) return nullptr;
  if (rank == rank_ || place.kind == DataPlace::Kind::address) return reinterpret_cast<std::byte*>(place.address);
  if (place.kind == DataPlace::Kind::segment) return parts_.part(place.segment, rank) + place.offset;
  return blocks_->view(rank, place.layout, block, place.offset);
}

}  // namespace tandem::comm

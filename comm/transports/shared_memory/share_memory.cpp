// From one rank's memory to memory of all ranks.
#include "tandem/comm/transports/shared_memory/shared_memory.h"
#include "tandem/core/error.h"

#include <exception>

namespace tandem::comm {

namespace {

/// The same on all ranks: the first rank's fault, or "".
std::string first_fault(Backend& backend, const std::string& mine) {
  const auto faults = backend.all_gather_bytes(mine);
  for (std::size_t rank = 0; rank < faults.size(); ++rank)
    if (!faults[rank].empty()) return fmt::format("rank {}: {}", rank, faults[rank]);
  return "";
}

}  // namespace

SharedByRanks share_memory(Backend& backend, std::int64_t part_bytes) {
  const Place place = backend.place();
  const bool makes = place.rank == 0;
  const ByteRange own{place.rank * part_bytes, part_bytes};
  std::shared_ptr<SharedMemory> memory;
  std::string fault;
  const auto attempt = [&](const auto& body) {
    try {
      body();
    } catch (const std::exception& error) {
      fault = error.what();
    }
  };
  if (makes) attempt([&] { memory = SharedMemory::create(place.size * part_bytes, own); });
  const std::string handle = backend.all_gather_bytes(memory ? memory->handle() : "").front();
  if (!makes && !handle.empty()) attempt([&] { memory = SharedMemory::open(handle, own); });
  std::string obstacle = first_fault(backend, fault);
  if (!obstacle.empty()) return {nullptr, std::move(obstacle)};
  if (makes) memory->seal();
  return {std::move(memory), ""};
}

}  // namespace tandem::comm

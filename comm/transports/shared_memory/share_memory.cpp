// From one rank's memory to memory of all ranks.
#include "tandem/comm/transports/shared_memory/first_fault.h"
#include "tandem/comm/transports/shared_memory/shared_memory.h"
#include "tandem/core/error.h"

#include <exception>
#include <utility>

namespace tandem::comm {

void SharedMemory::keep(std::shared_ptr<const void> thing) {
  const std::lock_guard lock(mutex_);
  kept_.push_back(std::move(thing));
}

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

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

SharedByRanks share_memory(Backend& backend, std::int64_t part_bytes, const SharingOptions& options) {
  const Place place = backend.place();
  const bool makes = place.rank == options.maker;
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
  if (makes) attempt([&] { memory = SharedMemory::create(place.size * part_bytes, own, options.name); });
  const std::vector<std::string> handles = backend.all_gather_bytes(memory ? memory->handle() : "");
  const std::string& handle = handles[static_cast<std::size_t>(options.maker)];
  if (!makes && !handle.empty()) attempt([&] { memory = SharedMemory::open(handle, own, options.keeps_file); });
  std::string obstacle = first_fault(backend, fault);
  if (!obstacle.empty()) return {nullptr, std::move(obstacle)};
  if (makes && !options.keeps_file) memory->seal();
  return {std::move(memory), ""};
}

}  // namespace tandem::comm

// Where images are kept, and why.
#include "resident_data.h"

#include "tandem/core/cuda/free_memory.h"
#include "tandem/core/has_cuda.h"
#include "tandem/core/memory.h"

#include <fmt/core.h>

#include <sstream>
#include <vector>

namespace tandem::apps {

namespace {

constexpr std::string_view kFlag = "--resident-data";

std::string line(std::string_view text) { return fmt::format("  images   {}\n", text); }

}  // namespace

FreeMemory least_free_memory(comm::ProcessGroup& group, Device device, std::int64_t bytes) {
  const std::vector<std::string> all = group.all_gather_bytes(fmt::format("{} {}", bytes, name_of(device)));
  FreeMemory least{bytes, name_of(device)};
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    std::istringstream told(all[rank]);
    FreeMemory there;
    told >> there.bytes >> there.where;
    if (all.size() > 1) there.where += fmt::format(" of rank {}", rank);
    if (rank == 0 || there.bytes < least.bytes) least = there;
  }
  return least;
}

ResidentData resident_data(const Settings& s, const Data& images, Device device, const FreeMemory& free) {
  std::int64_t bytes = images.train->images.numel() + images.test->images.numel();
  if (images.validation != nullptr) bytes += images.validation->images.numel();
  const bool is_asked_for = s.resident_data == "on";
  if (device.type != DeviceType::cuda) {
    require(!is_asked_for,
            "{} on: the run computes on the CPU, where the images are in any case; leave it out, or add "
            "--device cuda",
            kFlag);
    return {};
  }
  if (s.resident_data == "off") return {.text = line("batches are made on the CPU")};
  if (s.loader.mix.any()) {
    require(!is_asked_for, "{} on: --mixup and --cutmix mix images on the CPU; leave one of them out", kFlag);
    return {.text = line("batches are made on the CPU, where images are mixed")};
  }
  require(!is_asked_for || bytes <= free.bytes,
          "{} on: {} of images do not fit into the {} that are free on {}; choose auto or off", kFlag,
          format_memory(bytes), format_memory(free.bytes), free.where);
  constexpr std::int64_t kPartForImages = 4;
  if (!is_asked_for && bytes > free.bytes / kPartForImages) {
    return {.text = line(fmt::format("{}, more than a quarter of what is free on {}: batches are made on the CPU",
                                     format_memory(bytes), free.where))};
  }
  return {.is_resident = true,
          .text = line(fmt::format("{} on {}, which makes the batches", format_memory(bytes), name_of(device)))};
}

std::int64_t free_memory_of(Device device) {
  if constexpr (kHasCuda)
    if (device.type == DeviceType::cuda) return cuda::free_memory(device.index);
  return 0;
}

}  // namespace tandem::apps

// Where images are kept, and why.
#include "resident_data.h"

#include "tandem/core/device_query.h"
#include "tandem/core/memory.h"

#include <fmt/core.h>

#include <algorithm>

namespace tandem::apps {

namespace {

constexpr std::string_view kFlag = "--resident-data";

std::string line(std::string_view text) { return fmt::format("  images   {}\n", text); }

}  // namespace

ResidentData resident_data(const Settings& s, const Data& images, Device device, std::int64_t memory_bytes) {
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
  require(!is_asked_for || memory_bytes == 0 || bytes <= memory_bytes,
          "{} on: {} of images do not fit into the {} of {}; choose auto or off", kFlag, format_memory(bytes),
          format_memory(memory_bytes), name_of(device));
  constexpr std::int64_t kPartForImages = 4;
  if (!is_asked_for && memory_bytes > 0 && bytes > memory_bytes / kPartForImages) {
    return {.text = line(fmt::format("{}, more than a quarter of the memory of {}: batches are made on the CPU",
                                     format_memory(bytes), name_of(device)))};
  }
  return {.is_resident = true,
          .text = line(fmt::format("{} on {}, which makes the batches", format_memory(bytes), name_of(device)))};
}

std::int64_t memory_of(Device device) {
  if (device.type != DeviceType::cuda) return 0;  // nobody asks, and looking for devices takes time
  const std::vector<DeviceDescription> devices = list_devices();
  const auto found = std::find_if(devices.begin(), devices.end(), [&](const auto& d) { return d.device == device; });
  return found == devices.end() ? 0 : found->memory_bytes;
}

}  // namespace tandem::apps

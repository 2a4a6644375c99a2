// Reading device names.
#include "tandem/core/parse_device.h"

#include "tandem/core/device_query.h"
#include "tandem/core/error.h"
#include "tandem/core/number_text.h"

namespace tandem {

std::optional<Device> read_device(std::string_view text) {
  if (text == "auto") return std::nullopt;
  if (text == "cpu") return Device{};
  if (text == "cuda") return Device{DeviceType::cuda, 0};
  constexpr std::string_view kPrefix = "cuda:";
  if (text.starts_with(kPrefix)) {
    const std::string_view digits = text.substr(kPrefix.size());
    const std::optional<int> index = parse_number<int>(digits);
    if (index && !digits.starts_with('-')) return Device{DeviceType::cuda, *index};
  }
  fail("unknown device '{}': give auto, cpu, cuda or cuda:N (here: {})", text, device_names());
}

Device parse_device(std::string_view text) {
  const std::optional<Device> named = read_device(text);
  const bool has_gpu = cuda_device_count() > 0 && !cuda_is_simulated();
  if (!named) return has_gpu ? Device{DeviceType::cuda, 0} : Device{};
  check_device(*named);
  return *named;
}

}  // namespace tandem

// Reading device names.
#include "tandem/core/parse_device.h"

#include "tandem/core/device_query.h"
#include "tandem/core/error.h"

#include <charconv>

namespace tandem {

std::optional<Device> read_device(std::string_view text) {
  if (text == "auto") return std::nullopt;
  if (text == "cpu") return Device{};
  if (text == "cuda") return Device{DeviceType::cuda, 0};
  constexpr std::string_view kPrefix = "cuda:";
  if (text.starts_with(kPrefix)) {
    const std::string_view digits = text.substr(kPrefix.size());
    int index = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
    const bool whole = !digits.empty() && digits.front() != '-' && end == digits.data() + digits.size();
    if (error == std::errc{} && whole) return Device{DeviceType::cuda, index};
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

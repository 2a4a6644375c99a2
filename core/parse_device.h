// Devices as users write them.
#pragma once

#include "tandem/core/device.h"

#include <optional>
#include <string_view>

namespace tandem {

/// "cpu", "cuda" (the first GPU) or "cuda:N"; nothing for "auto". Throws Error for any other text. Does not ask whether
/// there is such a device.
std::optional<Device> read_device(std::string_view text);

/// The same, but a device that is there: "auto" is the first GPU, or the CPU where there is none or only a simulated
/// one, which is for tests and slow. Throws Error with the reason and the devices there are.
/// Example:
///     const Device device = parse_device("auto");
///     const bool given = read_device("cuda:1").has_value();  // true: on machines with one GPU, too
Device parse_device(std::string_view text);

}  // namespace tandem

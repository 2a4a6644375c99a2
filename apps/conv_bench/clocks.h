// How fast the device's clocks run just now.
#pragma once

#include "tandem/core/device.h"

#include <string>

namespace tandem::conv_bench {

/// The mean of the cores ("2794 MHz"); of a GPU multiprocessors now and at most, memory, power and degrees Celsius
/// ("1980 MHz, 1980 MHz, 3201 MHz, 412.10 W, 51"); or "unknown".
std::string clocks_of(Device device);

}  // namespace tandem::conv_bench

// Checks of optimizer and schedule options.
#pragma once

#include "tandem/core/error.h"

#include <cmath>
#include <string_view>

namespace tandem::optim {

inline void require_not_negative(std::string_view who, std::string_view what, double value) {
  require(std::isfinite(value) && value >= 0.0, "{}: {} must be a number >= 0, got {}", who, what, value);
}

/// For decay rates of running means.
inline void require_rate(std::string_view who, std::string_view what, double value) {
  require(value >= 0.0 && value < 1.0, "{}: {} must lie in [0, 1), got {}", who, what, value);
}

}  // namespace tandem::optim

// Normal random numbers.
#include "tandem/core/random.h"

#include <cmath>
#include <numbers>

namespace tandem {

float RandomKey::normal(std::uint64_t index) const {
  const auto words = block(index / 2);
  const std::size_t pair = 2 * (index % 2);
  const double radius_uniform = (static_cast<double>(words[pair]) + 0.5) * 0x1p-32;
  const double angle = 2.0 * std::numbers::pi * static_cast<double>(words[pair + 1]) * 0x1p-32;
  return static_cast<float>(std::sqrt(-2.0 * std::log(radius_uniform)) * std::cos(angle));
}

}  // namespace tandem

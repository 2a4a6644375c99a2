// The ranges of integers.
#include "tandem/core/dtype_values.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <type_traits>

namespace tandem {

bool is_in_range(DType dtype, double number) {
  return dispatch_all(dtype, "is_in_range", [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_integral_v<T>) {
      // 2^(digits): the first number beyond, which a double is, unlike the last within of i64.
      const double beyond = std::ldexp(1.0, std::numeric_limits<T>::digits);
      const double least = std::is_signed_v<T> ? -beyond : 0.0, whole = std::trunc(number);
      return whole >= least && whole < beyond;
    } else {
      return true;
    }
  });
}

std::string range_text(DType dtype) {
  return dispatch_all(dtype, "range_text", [](auto tag) -> std::string {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_integral_v<T>) {
      return fmt::format("{} to {}", std::numeric_limits<T>::min(), std::numeric_limits<T>::max());
    } else {
      return "any number";
    }
  });
}

}  // namespace tandem

// What the examples in comments of headers say that they give, compared with what they do give.
#pragma once

#include "tandem/core/describe.h"
#include "tandem/core/shape.h"
#include "tandem/core/tensor.h"

#include <concepts>
#include <string>
#include <string_view>

namespace tandem::test {

/// A value as comments write it: 6, 0.1, true, "text", {1, 2} for ranges; shapes, and tensors by theirs, as [2, 3].
template <typename T>
std::string shown(const T& value) {
  if constexpr (std::same_as<T, Tensor>)
    return to_string(value.shape());
  else if constexpr (std::same_as<T, Shape> || std::same_as<T, Strides>)
    return to_string(value);
  else if constexpr (std::convertible_to<T, std::string_view>)
    return fmt::format("\"{}\"", std::string_view(value));
  else if constexpr (std::floating_point<T>)
    return fmt::format("{:g}", value);
  else if constexpr (std::is_arithmetic_v<T>)
    return fmt::format("{}", value);
  else {
    std::string text;
    for (const auto& element : value) text += (text.empty() ? "" : ", ") + shown(element);
    return "{" + text + "}";
  }
}

/// Throws Error unless `value`, of the variable `name`, is what the example says.
template <typename T>
void expect_shown(std::string_view name, const T& value, std::string_view said) {
  require(shown(value) == said, "{} is {}, and the example says {}", name, shown(value), said);
}

}  // namespace tandem::test

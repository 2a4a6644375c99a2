// A setting of a two-dimensional window: one number for the height, one for the width.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>

namespace tandem {

/// A kernel's size, a stride, a padding or a dilation. One number stands for both, as in PyTorch.
/// Example:
///     const HeightWidth square = 3, flat{1, 5};  // square.height == 3, square.width == 3, flat[1] == 5
struct HeightWidth {
  std::int64_t height = 0, width = 0;  ///< of the two axes of an image, in this order

  /// The same for both axes.
  template <std::integral Integer>
  constexpr HeightWidth(Integer both) : height(static_cast<std::int64_t>(both)), width(height) {}
  /// One for each axis.
  constexpr HeightWidth(std::int64_t h, std::int64_t w) : height(h), width(w) {}

  /// axis 0 is the height, 1 the width.
  constexpr std::int64_t operator[](std::size_t axis) const { return axis == 0 ? height : width; }
  friend constexpr bool operator==(const HeightWidth&, const HeightWidth&) = default;
};

}  // namespace tandem

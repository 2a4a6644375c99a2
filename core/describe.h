// Tensors and shapes as arguments of require() and fail(). A call of describe() is carried out whether or not a check
// passes; a tensor is only described where a message is made.
// Example:
//     const Tensor x = Tensor::zeros({2, 3});
//     require(x.rank() == 2, "needs a matrix, got {}", x);
//     const std::string text = fmt::format("got {}", x);  // "got f32[2, 3]"
#pragma once

#include "tandem/core/tensor.h"

#include <fmt/format.h>

template <>
struct fmt::formatter<tandem::Tensor> : fmt::formatter<std::string_view> {
  auto format(const tandem::Tensor& tensor, fmt::format_context& context) const {
    return fmt::formatter<std::string_view>::format(tandem::describe(tensor), context);
  }
};

template <>
struct fmt::formatter<tandem::Shape> : fmt::formatter<std::string_view> {
  auto format(const tandem::Shape& shape, fmt::format_context& context) const {
    return fmt::formatter<std::string_view>::format(tandem::to_string(shape), context);
  }
};

template <>
struct fmt::formatter<tandem::Strides> : fmt::formatter<std::string_view> {
  auto format(const tandem::Strides& strides, fmt::format_context& context) const {
    return fmt::formatter<std::string_view>::format(tandem::to_string(strides), context);
  }
};

// Tensors, shapes, dtypes and devices as arguments of require(), fail() and fmt. Messages show a tensor's dtype and
// shape; fmt shows its values as well (core/print.h). A call of describe() is carried out whether or not a check
// passes; a tensor is only described where a message is made. Example:
//     const Tensor x = Tensor::zeros({2, 3});
//     require(x.rank() == 2, "needs a matrix, got {}", x);  // would say "got f32[2, 3]"
//     const std::string text = fmt::format("{} of {}", x.shape(), x.dtype());  // "[2, 3] of f32"
#pragma once

#include "tandem/core/device.h"
#include "tandem/core/dtype.h"
#include "tandem/core/print.h"
#include "tandem/core/shape.h"

#include <fmt/format.h>

#include <string_view>

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

template <>
struct fmt::formatter<tandem::DType> : fmt::formatter<std::string_view> {
  auto format(tandem::DType dtype, fmt::format_context& context) const {
    return fmt::formatter<std::string_view>::format(tandem::name_of(dtype), context);
  }
};

template <>
struct fmt::formatter<tandem::Device> : fmt::formatter<std::string_view> {
  auto format(tandem::Device device, fmt::format_context& context) const {
    return fmt::formatter<std::string_view>::format(tandem::name_of(device), context);
  }
};

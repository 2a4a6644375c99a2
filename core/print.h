// Tensors as text, which `std::cout << x` and `fmt::print("{}", x)` write: values as NumPy, dtype, shape, device.
// Example:
//     const Tensor x = Tensor::from<float>({1, 2.5, -3, 4}, {2, 2});
//     const std::string row = to_string(x.select(0, 0));  // "tensor([1. , 2.5], f32[2], cpu)"
//     const Tensor third = Tensor::full({1}, 1.0 / 3.0);
//     const std::string shorter = to_string(third, {.precision = 2});  // "tensor([0.33], f32[1], cpu)"
//     const std::string likewise = fmt::format("{:.2}", third);        // "tensor([0.33], f32[1], cpu)"
#pragma once

#include "tandem/core/tensor.h"

#include <fmt/format.h>

#include <string>

namespace tandem {

/// numpy.set_printoptions, with its defaults.
struct PrintOptions {
  int precision = 8;              ///< digits behind the point, at most
  std::int64_t threshold = 1000;  ///< with more elements than these, the middle of long dimensions is left out
  std::int64_t edge_items = 3;    ///< elements shown at either end of these, 1 or more
  int line_width = 75;            ///< characters after which a line is broken
};

/// "tensor([[1., 2.],\n        [3., 4.]], f32[2, 2], cpu)"; "tensor(undefined)" of an undefined tensor. The values are
/// the text of numpy.array2string (separator ", "): as many digits as tell each value from its neighbours of this
/// dtype, all numbers in one width, scientific where sizes differ much. What requires a gradient says so. Any dtype,
/// strides and device; of a tensor on a GPU only what is shown is copied, and the current stream is waited for. Throws
/// Error for options out of range.
std::string to_string(const Tensor& tensor, const PrintOptions& options = {});

/// In messages of require() and fail() a tensor is what describe() gives: one line, without values.
inline std::string in_message(const Tensor& tensor) { return describe(tensor); }

}  // namespace tandem

/// `{}`, or with a number of digits `{:.3}`.
template <>
struct fmt::formatter<tandem::Tensor> {
  constexpr auto parse(fmt::format_parse_context& context) {
    auto at = context.begin();
    bool has_digits = true;
    if (at != context.end() && *at == '.') {
      precision_ = 0;
      for (has_digits = false, ++at; at != context.end() && *at >= '0' && *at <= '9' && precision_ < 100; ++at) {
        precision_ = 10 * precision_ + (*at - '0');
        has_digits = true;
      }
    }
    if (!has_digits || (at != context.end() && *at != '}'))
      throw fmt::format_error("a tensor's format is {} or, with digits, {:.3}");
    return at;
  }

  auto format(const tandem::Tensor& tensor, fmt::format_context& context) const {
    return fmt::format_to(context.out(), "{}", tandem::to_string(tensor, {.precision = precision_}));
  }

 private:
  int precision_ = tandem::PrintOptions{}.precision;
};

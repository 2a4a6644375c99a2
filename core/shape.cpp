// Shape arithmetic.
#include "tandem/core/shape.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace tandem {

std::int64_t element_count(const Shape& shape) {
  std::int64_t count = 1;
  for (const std::int64_t size : shape) {
    // Called everywhere: the text of the shape is only made where it is needed.
    if (size < 0) fail("negative size in shape {}", to_string(shape));
    if (__builtin_mul_overflow(count, size, &count)) fail("shape {} has too many elements", to_string(shape));
  }
  return count;
}

Strides dense_strides(const Shape& shape, Layout layout) {
  Strides strides = Strides::zeros(shape.rank());
  const auto set_in_order = [&](std::initializer_list<int> fastest_first) {
    std::int64_t step = 1;
    for (const int dim : fastest_first) {
      strides[dim] = step;
      step *= std::max<std::int64_t>(shape[dim], 1);
    }
  };
  if (layout == Layout::channels_last && shape.rank() == 4) {
    set_in_order({1, 3, 2, 0});
    return strides;
  }
  std::int64_t step = 1;
  for (int dim = shape.rank() - 1; dim >= 0; --dim) {
    strides[dim] = step;
    step *= std::max<std::int64_t>(shape[dim], 1);
  }
  return strides;
}

namespace {
template <typename Meaning>
std::string text_of(const DimList<Meaning>& list) {
  return fmt::format("[{}]", fmt::join(list.begin(), list.end(), ", "));
}
}  // namespace

std::string to_string(const Shape& shape) { return text_of(shape); }
std::string to_string(const Strides& strides) { return text_of(strides); }

}  // namespace tandem

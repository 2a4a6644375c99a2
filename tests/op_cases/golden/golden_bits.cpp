// Elements as hexadecimal digits.
#include "tandem/core/out.h"
#include "tests/op_cases/golden/golden_recording.h"

#include <charconv>
#include <cstring>

namespace tandem::test {

std::string to_bits(const Tensor& tensor) {
  const auto bytes = static_cast<std::size_t>(size_of(tensor.dtype()));
  const auto* const elements = static_cast<const unsigned char*>(tensor.raw_data());
  std::string text;
  for (std::size_t i = 0; i < static_cast<std::size_t>(tensor.numel()); ++i) {
    std::uint64_t element = 0;
    std::memcpy(&element, elements + i * bytes, bytes);
    text += fmt::format("{:0{}x}", element, 2 * bytes);
  }
  return text;
}

Tensor from_bits(const std::string& bits, DType dtype, const Shape& shape) {
  const Tensor tensor = Tensor::empty(shape, {.dtype = dtype});
  const auto bytes = static_cast<std::size_t>(size_of(dtype)), digits = 2 * bytes;
  require(bits.size() == digits * static_cast<std::size_t>(tensor.numel()), "{} digits are not the bits of {}",
          bits.size(), describe(tensor));
  auto* const elements = static_cast<unsigned char*>(Out(tensor).raw_data());
  for (std::size_t i = 0; i * digits < bits.size(); ++i) {
    const char* const first = bits.data() + i * digits;
    std::uint64_t element = 0;
    const auto [end, error] = std::from_chars(first, first + digits, element, 16);
    require(error == std::errc() && end == first + digits, "'{}' is no hexadecimal number",
            std::string_view(first, digits));
    std::memcpy(elements + i * bytes, &element, bytes);
  }
  return tensor;
}

}  // namespace tandem::test

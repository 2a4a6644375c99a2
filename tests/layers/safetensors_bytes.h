// Safetensors files byte by byte, right and wrong.
#pragma once

#include <cstdint>
#include <string>

namespace tandem::test {

/// u64 length, header, data; `length` other than -1 overrides the header's true length.
inline std::string safetensors_bytes(const std::string& header, const std::string& data, std::int64_t length = -1) {
  const auto count = length < 0 ? static_cast<std::uint64_t>(header.size()) : static_cast<std::uint64_t>(length);
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes.push_back(static_cast<char>((count >> (8 * i)) & 0xff));
  return bytes + header + data;
}

}  // namespace tandem::test

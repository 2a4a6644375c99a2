// Reading safetensors files.
#include "tandem/core/out.h"
#include "tandem/layers/file.h"
#include "tandem/layers/safetensors/header.h"

#include <bit>

namespace tandem::layers {

static_assert(std::endian::native == std::endian::little, "safetensors data is little endian and read as it is");

namespace {

SafetensorsFile read(const InputFile& file, const std::string& path) {
  constexpr std::int64_t kLengthBytes = 8;
  require(file.size() >= kLengthBytes, "{}: not a safetensors file: {} bytes cannot hold the 8-byte header length",
          path, file.size());
  std::uint64_t header_bytes = 0;
  file.read(&header_bytes, kLengthBytes, 0);
  require(header_bytes <= static_cast<std::uint64_t>(safetensors::kMaxHeaderBytes),
          "{}: not a safetensors file: its header would be {} bytes, at most {} are allowed", path, header_bytes,
          safetensors::kMaxHeaderBytes);
  const std::int64_t data_begin = kLengthBytes + static_cast<std::int64_t>(header_bytes);
  require(data_begin <= file.size(), "{}: truncated: its header of {} bytes does not fit the file of {}", path,
          header_bytes, file.size());
  std::string json(static_cast<std::size_t>(header_bytes), '\0');
  file.read(json.data(), static_cast<std::int64_t>(header_bytes), kLengthBytes);

  safetensors::Header header = safetensors::parse_header(json, file.size() - data_begin, path);
  SafetensorsFile result{.tensors = {}, .metadata = std::move(header.metadata)};
  const MemoryTagScope scope(MemoryTag::workspace);
  for (safetensors::Entry& entry : header.entries) {
    const Tensor tensor = Tensor::empty(entry.shape, {.dtype = entry.dtype});
    if (entry.end > entry.begin) file.read(Out(tensor).raw_data(), entry.end - entry.begin, data_begin + entry.begin);
    result.tensors.emplace_back(std::move(entry.name), tensor);
  }
  return result;
}

}  // namespace

SafetensorsFile read_safetensors(const std::string& path) {
  const InputFile file(path);
  try {
    return read(file, path);
  } catch (const Error& error) {
    fail("{}; take another file, or get this one again", error.what());
  }
}

}  // namespace tandem::layers

// Weights files of any bytes are read within their size, or refused with an Error.
#include "tandem/layers/safetensors.h"
#include "tests/fuzz/input_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const tandem::fuzz::InputFile file;
  file.fill(data, size);
  try {
    std::size_t bytes = 0;
    for (const auto& [name, tensor] : tandem::layers::read_safetensors(file.path()).tensors)
      bytes += static_cast<std::size_t>(tensor.numel() * size_of(tensor.dtype()));
    tandem::fuzz::expect(bytes <= size);
  } catch (const tandem::Error&) {  // refused
  }
  return 0;
}

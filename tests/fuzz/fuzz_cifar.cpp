// CIFAR files of any bytes hold as many records as their size says, or are refused with an Error.
#include "tandem/data/cifar.h"
#include "tests/fuzz/input_file.h"

#include <array>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const tandem::fuzz::InputFile file;
  file.fill(data, size);
  const std::array<std::filesystem::path, 1> path{file.path()};
  try {
    const auto images =
        tandem::data::read_cifar_files(path, {.label_bytes = 2, .classes = 100, .records_per_file = 1}, 0);
    tandem::fuzz::expect(size == 3074 && images.images.numel() == 3072);
  } catch (const tandem::Error&) {  // refused
  }
  return 0;
}

// IDX files of any bytes, plain and gzip, are read as images of ten labels, or refused with an Error.
#include "tandem/data/idx.h"
#include "tests/fuzz/input_file.h"

#include <filesystem>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const tandem::fuzz::InputFile images, labels;
  constexpr std::uint8_t kLabels[] = {0, 0, 8, 1, 0, 0, 0, 2, 3, 9};
  labels.fill(kLabels, sizeof(kLabels));
  images.fill(data, size);
  try {
    const auto read = tandem::data::read_idx_files(images.path(), labels.path(), 10, "do this", 0);
    tandem::fuzz::expect(read.images.size(0) == 2);
  } catch (const tandem::Error&) {  // refused
  }
  // As labels, beside images that are in order.
  constexpr std::uint8_t kImages[] = {0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 1, 7, 8};
  labels.fill(data, size);
  images.fill(kImages, sizeof(kImages));
  try {
    const auto read = tandem::data::read_idx_files(images.path(), labels.path(), 10, "do this", 0);
    for (const std::int64_t label : read.labels.to_vector<std::int64_t>())
      tandem::fuzz::expect(label >= 0 && label < 10);
  } catch (const tandem::Error&) {  // refused
  }
  return 0;
}

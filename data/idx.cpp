// Reading IDX files.
#include "tandem/data/idx.h"

#include "tandem/core/out.h"
#include "tandem/data/byte_reader.h"
#include "tandem/data/directories.h"

#include <algorithm>
#include <array>
#include <vector>

namespace tandem::data {

namespace {

namespace fs = std::filesystem;

constexpr std::uint32_t kImagesMagic = 0x00000803;
constexpr std::uint32_t kLabelsMagic = 0x00000801;
constexpr std::int64_t kMostItems = 10'000'000;
constexpr std::int64_t kMostPixelsPerSide = 1024;

std::int64_t read_big_endian(ByteReader& reader, std::string_view what) {
  std::array<std::uint8_t, 4> bytes;
  reader.read(bytes, what);
  return std::int64_t{bytes[0]} << 24 | std::int64_t{bytes[1]} << 16 | std::int64_t{bytes[2]} << 8 | bytes[3];
}

void check_magic(ByteReader& reader, std::uint32_t expected, std::string_view kind) {
  const std::int64_t magic = read_big_endian(reader, "the IDX magic number");
  require(magic == expected, "{}: wrong magic {:#010x} at offset 0, expected {:#010x} (IDX {}); {}", reader.path(),
          magic, expected, kind, reader.advice());
}

std::int64_t read_size(ByteReader& reader, std::string_view what, std::int64_t most) {
  const std::int64_t offset = reader.offset();
  const std::int64_t size = read_big_endian(reader, what);
  require(size >= 1 && size <= most, "{}: {} is {} at offset {}, expected 1 to {}; {}", reader.path(), what, size,
          offset, most, reader.advice());
  return size;
}

Tensor read_images(const fs::path& path, const std::string& advice, std::int64_t limit, std::int64_t& in_file) {
  const auto reader = open_bytes(path, advice);
  check_magic(*reader, kImagesMagic, "images");
  in_file = read_size(*reader, "the number of images", kMostItems);
  const std::int64_t height = read_size(*reader, "the number of rows", kMostPixelsPerSide);
  const std::int64_t width = read_size(*reader, "the number of columns", kMostPixelsPerSide);
  reader->expect_size(reader->offset() + in_file * height * width,
                      fmt::format("{} images of {} x {} after a header of 16", in_file, height, width));
  const std::int64_t count = limit == 0 ? in_file : std::min(limit, in_file);
  Tensor images = Tensor::empty({count, 1, height, width}, {.dtype = DType::u8});
  reader->read({Out(images).data<std::uint8_t>(), static_cast<std::size_t>(images.numel())}, "pixels");
  if (count == in_file) reader->finish();
  return images;
}

Tensor read_labels(const fs::path& path, const std::string& advice, std::int64_t classes, std::int64_t in_file,
                   std::int64_t count) {
  const auto reader = open_bytes(path, advice);
  check_magic(*reader, kLabelsMagic, "labels");
  const std::int64_t labels_in_file = read_size(*reader, "the number of labels", kMostItems);
  require(labels_in_file == in_file, "{}: holds {} labels for {} images; {}", path.string(), labels_in_file, in_file,
          advice);
  reader->expect_size(reader->offset() + in_file, fmt::format("{} labels after a header of 8", in_file));
  const std::int64_t first_offset = reader->offset();
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(in_file));
  reader->read(bytes, "labels");
  reader->finish();
  Tensor labels = Tensor::empty({count}, {.dtype = DType::i64});
  auto* values = Out(labels).data<std::int64_t>();
  for (std::int64_t i = 0; i < count; ++i) {
    values[i] = bytes[static_cast<std::size_t>(i)];
    require(values[i] < classes, "{}: record {} (offset {}) has label {}, expected 0 to {}; {}", path.string(), i,
            first_offset + i, values[i], classes - 1, advice);
  }
  return labels;
}

ImageDataset load_pair(const fs::path& directory, const std::string& subfolder, const std::string& name, Split split,
                       std::int64_t limit) {
  const std::string advice = get_data_again_advice(name);
  const std::string prefix = split == Split::train ? "train" : "t10k";
  const auto spellings = [&](const std::string& kind) {
    const std::string stem = prefix + "-" + kind;
    const std::string idx = kind == "images" ? "idx3-ubyte" : "idx1-ubyte";
    return std::vector<std::string>{stem + "-" + idx, stem + "-" + idx + ".gz", stem + "." + idx,
                                    stem + "." + idx + ".gz"};
  };
  const auto file_in = [&](const fs::path& folder, const std::string& kind) {
    std::error_code unreadable;
    for (const auto& file : spellings(kind))
      if (fs::exists(folder / file, unreadable)) return folder / file;
    return folder / spellings(kind).front();
  };
  const fs::path folder = folder_with(directory, {"", "raw", subfolder}, spellings("images"), name);
  ImageDataset dataset = read_idx_files(file_in(folder, "images"), file_in(folder, "labels"), 10, advice, limit);
  dataset.name = name;
  return dataset;
}

}  // namespace

ImageDataset read_idx_files(const fs::path& images, const fs::path& labels, std::int64_t classes,
                            const std::string& advice, std::int64_t limit) {
  require(limit >= 0, "a limit of {} images makes no sense: give 1 or more, or 0 for all", limit);
  const MemoryTagScope tag(MemoryTag::data);
  ImageDataset dataset;
  std::int64_t in_file = 0;
  dataset.images = read_images(images, advice, limit, in_file);
  dataset.labels = read_labels(labels, advice, classes, in_file, dataset.size());
  return dataset;
}

ImageDataset load_mnist(const fs::path& directory, Split split, std::int64_t limit) {
  ImageDataset dataset = load_pair(directory, "MNIST/raw", "mnist", split, limit);
  dataset.class_names = {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"};
  dataset.mean = {0.1307F};
  dataset.deviation = {0.3081F};
  return dataset;
}

ImageDataset load_fashion_mnist(const fs::path& directory, Split split, std::int64_t limit) {
  ImageDataset dataset = load_pair(directory, "FashionMNIST/raw", "fashion-mnist", split, limit);
  dataset.class_names = {"T-shirt/top", "Trouser", "Pullover", "Dress", "Coat",
                         "Sandal",      "Shirt",   "Sneaker",  "Bag",   "Ankle boot"};
  dataset.mean = {0.2860F};
  dataset.deviation = {0.3530F};
  return dataset;
}

}  // namespace tandem::data

// Reading CIFAR's binary files.
#include "tandem/data/cifar.h"

#include "tandem/core/out.h"
#include "tandem/data/byte_reader.h"
#include "tandem/data/directories.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

namespace tandem::data {

namespace {

constexpr std::int64_t kSide = 32;
constexpr std::int64_t kImageBytes = 3 * kSide * kSide;
constexpr std::int64_t kRecordsPerRead = 512;  // about 1.5 MB: stays in the cache until it is copied out

/// Opens all files, so that a missing or cut one is found before anything large is allocated.
std::vector<std::unique_ptr<ByteReader>> open_all(std::span<const std::filesystem::path> files,
                                                  const CifarFormat& format) {
  std::vector<std::unique_ptr<ByteReader>> readers;
  const std::int64_t record = format.label_bytes + kImageBytes;
  for (const auto& file : files) {
    readers.push_back(open_bytes(file, format.advice));
    readers.back()->expect_size(format.records_per_file * record,
                                fmt::format("{} records of {} bytes", format.records_per_file, record));
  }
  return readers;
}

std::vector<std::string> cifar100_names() {
  return {"apple",      "aquarium_fish", "baby",         "bear",       "beaver",      "bed",         "bee",
          "beetle",     "bicycle",       "bottle",       "bowl",       "boy",         "bridge",      "bus",
          "butterfly",  "camel",         "can",          "castle",     "caterpillar", "cattle",      "chair",
          "chimpanzee", "clock",         "cloud",        "cockroach",  "couch",       "crab",        "crocodile",
          "cup",        "dinosaur",      "dolphin",      "elephant",   "flatfish",    "forest",      "fox",
          "girl",       "hamster",       "house",        "kangaroo",   "keyboard",    "lamp",        "lawn_mower",
          "leopard",    "lion",          "lizard",       "lobster",    "man",         "maple_tree",  "motorcycle",
          "mountain",   "mouse",         "mushroom",     "oak_tree",   "orange",      "orchid",      "otter",
          "palm_tree",  "pear",          "pickup_truck", "pine_tree",  "plain",       "plate",       "poppy",
          "porcupine",  "possum",        "rabbit",       "raccoon",    "ray",         "road",        "rocket",
          "rose",       "sea",           "seal",         "shark",      "shrew",       "skunk",       "skyscraper",
          "snail",      "snake",         "spider",       "squirrel",   "streetcar",   "sunflower",   "sweet_pepper",
          "table",      "tank",          "telephone",    "television", "tiger",       "tractor",     "train",
          "trout",      "tulip",         "turtle",       "wardrobe",   "whale",       "willow_tree", "wolf",
          "woman",      "worm"};
}

}  // namespace

ImageDataset read_cifar_files(std::span<const std::filesystem::path> files, const CifarFormat& format,
                              std::int64_t limit) {
  require(limit >= 0, "a limit of {} images makes no sense: give 1 or more, or 0 for all", limit);
  const auto readers = open_all(files, format);
  const std::int64_t all = static_cast<std::int64_t>(files.size()) * format.records_per_file;
  const std::int64_t count = limit == 0 ? all : std::min(limit, all);
  const std::int64_t record = format.label_bytes + kImageBytes;

  const MemoryTagScope tag(MemoryTag::data);
  ImageDataset dataset;
  dataset.images = Tensor::empty({count, 3, kSide, kSide}, {.dtype = DType::u8});
  dataset.labels = Tensor::empty({count}, {.dtype = DType::i64});
  auto* image = Out(dataset.images).data<std::uint8_t>();
  auto* label = Out(dataset.labels).data<std::int64_t>();
  std::vector<std::uint8_t> chunk(static_cast<std::size_t>(std::min(count, kRecordsPerRead) * record));

  std::int64_t done = 0;
  for (const auto& reader : readers) {
    const std::int64_t from_file = std::min(format.records_per_file, count - done);
    for (std::int64_t in_file = 0; in_file < from_file;) {
      const std::int64_t records = std::min(kRecordsPerRead, from_file - in_file);
      reader->read(std::span(chunk).first(static_cast<std::size_t>(records * record)), "image records");
      for (std::int64_t i = 0; i < records; ++i, ++in_file, ++done) {
        const std::uint8_t* bytes = chunk.data() + i * record;
        const std::int64_t value = bytes[format.label_bytes - 1];
        require(value < format.classes, "{}: record {} (offset {}) has label {}, expected 0 to {}; {}", reader->path(),
                in_file, in_file * record + format.label_bytes - 1, value, format.classes - 1, format.advice);
        label[done] = value;
        std::memcpy(image + done * kImageBytes, bytes + format.label_bytes, static_cast<std::size_t>(kImageBytes));
      }
    }
    if (from_file == format.records_per_file) reader->finish();
    if (done == count) break;
  }
  return dataset;
}

ImageDataset load_cifar10(const std::filesystem::path& directory, Split split, std::int64_t limit) {
  const CifarFormat format{.advice = get_data_again_advice("cifar10")};
  const std::string first = split == Split::train ? "data_batch_1.bin" : "test_batch.bin";
  const auto folder = folder_with(directory, {"", "cifar-10-batches-bin"}, {first}, "cifar10");
  std::vector<std::filesystem::path> files{folder / first};
  if (split == Split::train)
    for (int i = 2; i <= 5; ++i) files.push_back(folder / fmt::format("data_batch_{}.bin", i));
  ImageDataset dataset = read_cifar_files(files, format, limit);
  dataset.name = "cifar10";
  dataset.class_names = {"airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"};
  dataset.mean = {0.4914F, 0.4822F, 0.4465F};
  dataset.deviation = {0.2470F, 0.2435F, 0.2616F};
  return dataset;
}

ImageDataset load_cifar100(const std::filesystem::path& directory, Split split, std::int64_t limit) {
  const CifarFormat format{.label_bytes = 2,
                           .classes = 100,
                           .records_per_file = split == Split::train ? 50000 : 10000,
                           .advice = get_data_again_advice("cifar100")};
  const std::string name = fmt::format("{}.bin", name_of(split));
  const std::filesystem::path file = folder_with(directory, {"", "cifar-100-binary"}, {name}, "cifar100") / name;
  ImageDataset dataset = read_cifar_files({&file, 1}, format, limit);
  dataset.name = "cifar100";
  dataset.class_names = cifar100_names();
  dataset.mean = {0.5071F, 0.4865F, 0.4409F};
  dataset.deviation = {0.2673F, 0.2564F, 0.2762F};
  return dataset;
}

}  // namespace tandem::data

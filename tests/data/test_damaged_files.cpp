// Files of data sets, cut at every byte of their headers and with flipped bits: an Error or data within the rules.
#include "tandem/data/cifar.h"
#include "tandem/data/idx.h"
#include "tests/data/files.h"
#include "tests/support/catch.h"
#include "tests/support/damage.h"

#include <array>
#include <optional>

using namespace tandem;
using namespace tandem::data;
using namespace tandem::test;

namespace {

constexpr std::uint8_t kImages = 12, kSide = 5;

Bytes noise(std::size_t count) {
  Bytes bytes(count);
  for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::uint8_t>((i * i * 31 + i * 7) % 253);
  return bytes;
}

Bytes image_file() {
  return Bytes{0, 0, 8, 3, 0, 0, 0, kImages, 0, 0, 0, kSide, 0, 0, 0, kSide} +
         noise(std::size_t{kImages} * kSide * kSide);
}

Bytes label_file() {
  Bytes bytes{0, 0, 8, 1, 0, 0, 0, kImages};
  for (std::uint8_t i = 0; i < kImages; ++i) bytes.push_back(i % 10);
  return bytes;
}

/// What `read` gives, or nothing where it throws Error; anything else ends the test.
template <typename Read>
std::optional<ImageDataset> result_of(Read&& read) {
  try {
    return read();
  } catch (const Error&) {
    return std::nullopt;
  }
}

/// All pixels and labels are of the file, which has so many bytes.
void check_within(const ImageDataset& dataset, std::size_t bytes) {
  REQUIRE(dataset.images.numel() <= static_cast<std::int64_t>(bytes));
  REQUIRE(dataset.labels.numel() == dataset.images.size(0));
  for (const std::int64_t label : dataset.labels.to_vector<std::int64_t>()) REQUIRE((label >= 0 && label < 10));
}

}  // namespace

TEST_CASE("IDX files with any damage are refused, or read as what they say") {
  const TemporaryFolder folder;
  const Bytes images = image_file(), labels = label_file();
  const auto image_path = folder.write("images", images), label_path = folder.write("labels", labels);
  const auto read = [&] { return result_of([&] { return read_idx_files(image_path, label_path, 10, "do this", 0); }); };
  REQUIRE(read().has_value());
  int accepted = 0, refused = 0;
  const auto check_read = [&](std::size_t bytes) {
    const std::optional<ImageDataset> dataset = read();
    ++(dataset ? accepted : refused);
    if (dataset) check_within(*dataset, bytes);
  };
  for_each_damage(images, 16, [&](const Bytes& damaged) {
    folder.write("images", damaged);
    check_read(damaged.size());
  });
  folder.write("images", images);
  for_each_damage(labels, 8, [&](const Bytes& damaged) {
    folder.write("labels", damaged);
    check_read(images.size());
  });
  CHECK(accepted > 0);  // other pixels and labels are in order
  CHECK(refused > 5000);
}

TEST_CASE("gzip files with any damage are refused, or give what they gave") {
  const TemporaryFolder folder;
  const Bytes images = gzip(image_file());
  const auto image_path = folder.write("images.gz", images), label_path = folder.write("labels", label_file());
  const auto read = [&] { return result_of([&] { return read_idx_files(image_path, label_path, 10, "do this", 0); }); };
  const auto good = read();
  REQUIRE(good.has_value());
  for_each_damage(images, images.size(), [&](const Bytes& damaged) {
    folder.write("images.gz", damaged);
    if (const auto dataset = read())
      REQUIRE(dataset->images.to_vector<std::uint8_t>() == good->images.to_vector<std::uint8_t>());
  });
}

TEST_CASE("CIFAR files with any damage are refused, or give as many records") {
  const TemporaryFolder folder;
  const CifarFormat format{.label_bytes = 1, .classes = 10, .records_per_file = 2, .advice = "do this"};
  Bytes file = noise(2 * 3073);
  file[0] = 3;
  file[3073] = 9;
  const std::array<std::filesystem::path, 1> path{folder.write("batch.bin", file)};
  int refused = 0;
  for_each_damage(file, 40, [&](const Bytes& damaged) {
    folder.write("batch.bin", damaged);
    const auto dataset = result_of([&] { return read_cifar_files(path, format, 0); });
    if (!dataset) ++refused;
    if (!dataset) return;
    REQUIRE(damaged.size() == file.size());
    check_within(*dataset, damaged.size());
    REQUIRE(dataset->images.size(0) == 2);
  });
  CHECK(refused >= 41);
}

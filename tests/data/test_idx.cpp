// IDX files, plain and gzip: what is read, and what is refused.
#include "tandem/data/idx.h"
#include "tests/data/files.h"
#include "tests/support/catch.h"

using namespace tandem;
using namespace tandem::data;
using namespace tandem::test;

namespace {

Bytes big_endian(std::uint32_t value) {
  return {static_cast<std::uint8_t>(value >> 24), static_cast<std::uint8_t>(value >> 16),
          static_cast<std::uint8_t>(value >> 8), static_cast<std::uint8_t>(value)};
}

std::uint8_t pixel(std::int64_t index) { return static_cast<std::uint8_t>(index * 29 % 253); }

Bytes image_file(std::uint32_t count, std::uint32_t height, std::uint32_t width, std::uint32_t magic = 0x803) {
  Bytes bytes = big_endian(magic) + big_endian(count) + big_endian(height) + big_endian(width);
  for (std::int64_t i = 0; i < std::int64_t{count} * height * width; ++i) bytes.push_back(pixel(i));
  return bytes;
}

Bytes label_file(std::uint32_t count, std::uint32_t magic = 0x801) {
  Bytes bytes = big_endian(magic) + big_endian(count);
  for (std::uint32_t i = 0; i < count; ++i) bytes.push_back(static_cast<std::uint8_t>(i * 3 % 10));
  return bytes;
}

/// The error for a pair of files with these contents.
std::string refusal(const Bytes& images, const Bytes& labels, const std::string& ending = "") {
  const TemporaryFolder folder;
  const auto image_path = folder.write("images" + ending, images);
  const auto label_path = folder.write("labels" + ending, labels);
  return error_of([&] { read_idx_files(image_path, label_path, 10, "do this", 0); });
}

Bytes without_last(Bytes bytes, std::size_t count) {
  bytes.resize(bytes.size() - count);
  return bytes;
}

}  // namespace

TEST_CASE("IDX files give back what was written, plain and gzip, under every name") {
  const TemporaryFolder folder;
  const std::string separator = GENERATE("-", ".");
  const std::string ending = GENERATE("", ".gz");
  const std::string subfolder = GENERATE("", "raw/", "FashionMNIST/raw/");
  const auto packed = [&](const Bytes& bytes) { return ending.empty() ? bytes : gzip(bytes); };
  folder.write(subfolder + "t10k-images" + separator + "idx3-ubyte" + ending, packed(image_file(23, 5, 4)));
  folder.write(subfolder + "t10k-labels" + separator + "idx1-ubyte" + ending, packed(label_file(23)));
  for (const std::int64_t limit : {0, 1, 22, 23, 24}) {
    const ImageDataset dataset = load_fashion_mnist(folder.path(), Split::test, limit);
    check(dataset);
    const std::int64_t expected = limit == 0 ? 23 : std::min<std::int64_t>(limit, 23);
    REQUIRE(dataset.images.shape() == Shape({expected, 1, 5, 4}));
    REQUIRE(dataset.images.storage()->tag() == MemoryTag::data);
    for (std::int64_t i = 0; i < expected * 20; ++i) REQUIRE(dataset.images.data<std::uint8_t>()[i] == pixel(i));
    for (std::int64_t i = 0; i < expected; ++i) REQUIRE(dataset.labels.data<std::int64_t>()[i] == i * 3 % 10);
  }
}

TEST_CASE("gzip members that follow each other are one file") {
  const TemporaryFolder folder;
  const Bytes images = image_file(40, 10, 10);
  const auto middle = images.begin() + 1000;
  const auto image_path =
      folder.write("images.gz", gzip(Bytes(images.begin(), middle)) + gzip(Bytes(middle, images.end())));
  const auto label_path = folder.write("labels", label_file(40));
  const ImageDataset dataset = read_idx_files(image_path, label_path, 10, "", 0);
  CHECK(dataset.images.data<std::uint8_t>()[3999] == pixel(3999));
}

TEST_CASE("damaged IDX files are refused with file, offset and advice") {
  const Bytes images = image_file(6, 5, 4), labels = label_file(6);
  REQUIRE(refusal(images, labels) == "no error");
  SECTION("wrong magic") {
    CHECK_THAT(refusal(image_file(6, 5, 4, 0x801), labels),
               ContainsText("images: wrong magic 0x00000801 at offset 0, expected 0x00000803 (IDX images); do this"));
    CHECK_THAT(refusal(images, label_file(6, 0x12345678)),
               ContainsText("labels: wrong magic 0x12345678 at offset 0, expected 0x00000801 (IDX labels); do this"));
  }
  SECTION("cut in the header") {
    CHECK_THAT(refusal(Bytes(images.begin(), images.begin() + 6), labels),
               ContainsText("images: truncated at offset 6: expected 2 more bytes of the number of images"));
  }
  SECTION("truncated and oversized") {
    CHECK_THAT(refusal(without_last(images, 1), labels), ContainsText("images: truncated at offset 135: expected 136"));
    CHECK_THAT(refusal(images + Bytes{0}, labels), ContainsText("images: oversized: has 137 bytes, expected 136"));
    CHECK_THAT(refusal(images, without_last(labels, 2)), ContainsText("labels: truncated at offset 12"));
    CHECK_THAT(refusal(images, labels + Bytes{0}), ContainsText("labels: oversized"));
  }
  SECTION("sizes that make no sense or promise too much are refused before memory is asked for") {
    const Bytes head = big_endian(0x803);
    CHECK_THAT(refusal(head + big_endian(0) + big_endian(5) + big_endian(4), labels),
               ContainsText("the number of images is 0 at offset 4"));
    CHECK_THAT(refusal(head + big_endian(0xffffffff) + big_endian(5) + big_endian(4), labels),
               ContainsText("the number of images is 4294967295 at offset 4"));
    CHECK_THAT(refusal(head + big_endian(6) + big_endian(0) + big_endian(4), labels),
               ContainsText("the number of rows"));
    CHECK_THAT(refusal(head + big_endian(6) + big_endian(4) + big_endian(4000), labels),
               ContainsText("the number of columns is 4000 at offset 12"));
    const Bytes huge = head + big_endian(10000000) + big_endian(1024) + big_endian(1024);
    CHECK_THAT(refusal(huge, labels), ContainsText("truncated at offset 16"));
    CHECK_THAT(refusal(gzip(huge), gzip(labels), ".gz"), ContainsText("cannot hold the expected"));
  }
  SECTION("images and labels that do not belong together") {
    CHECK_THAT(refusal(images, label_file(7)), ContainsText("labels: holds 7 labels for 6 images"));
  }
  SECTION("label out of range") {
    Bytes bad = labels;
    bad[8 + 4] = 11;
    CHECK_THAT(refusal(images, bad),
               ContainsText("labels: record 4 (offset 12) has label 11, expected 0 to 9; do this"));
  }
}

TEST_CASE("damaged gzip files are refused") {
  const Bytes images = image_file(50, 10, 10), labels = label_file(50);
  const Bytes packed = gzip(images), packed_labels = gzip(labels);
  REQUIRE(refusal(packed, packed_labels, ".gz") == "no error");
  SECTION("not gzip at all") {
    CHECK_THAT(refusal(images, labels, ".gz"), ContainsText("images.gz: is not gzip: begins with 0x00 0x00"));
  }
  SECTION("cut anywhere") {
    for (std::size_t left = 2; left < packed.size(); left += left < 40 ? 1 : 97) {
      CAPTURE(left);
      CHECK_THAT(
          refusal(Bytes(packed.begin(), packed.begin() + static_cast<std::ptrdiff_t>(left)), packed_labels, ".gz"),
          ContainsText("images.gz: ") && ContainsText("do this"));
    }
    CHECK_THAT(refusal(without_last(packed, 1), packed_labels, ".gz"),
               ContainsText("gzip data truncated at compressed"));
  }
  SECTION("one bit turned in the data or the checksum") {
    Bytes bad = packed;
    bad[GENERATE_COPY(packed.size() / 2, packed.size() - 6)] ^= 4;
    CHECK_THAT(refusal(bad, packed_labels, ".gz"), ContainsText("images.gz: ") && ContainsText("do this"));
  }
  SECTION("contents too long or too short") {
    CHECK_THAT(refusal(gzip(images + Bytes{1}), packed_labels, ".gz"),
               ContainsText("oversized: its contents continue after offset 5016"));
    CHECK_THAT(refusal(gzip(without_last(images, 3)), packed_labels, ".gz"),
               ContainsText("truncated at offset 5013 of its contents: expected 3 more bytes of pixels"));
  }
  SECTION("rubbish after the last member") {
    CHECK_THAT(refusal(packed + Bytes{1, 2, 3}, packed_labels, ".gz"), ContainsText("gzip data damaged"));
  }
}

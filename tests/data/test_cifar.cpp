// CIFAR files: what is read, and what is refused.
#include "tandem/data/cifar.h"
#include "tests/data/files.h"
#include "tests/support/catch.h"

#include <numeric>

using namespace tandem;
using namespace tandem::data;
using namespace tandem::test;

namespace {

constexpr std::int64_t kImage = 3072;

std::uint8_t pixel(std::int64_t record, std::int64_t k) {
  return static_cast<std::uint8_t>((record * 37 + k * 11) % 251);
}

Bytes records(std::int64_t first, std::int64_t count, std::int64_t label_bytes, std::int64_t classes) {
  Bytes bytes;
  for (std::int64_t r = first; r < first + count; ++r) {
    if (label_bytes == 2) bytes.push_back(static_cast<std::uint8_t>(200));  // coarse: not ours, any value
    bytes.push_back(static_cast<std::uint8_t>(r % classes));
    for (std::int64_t k = 0; k < kImage; ++k) bytes.push_back(pixel(r, k));
  }
  return bytes;
}

CifarFormat small_format() { return {.label_bytes = 1, .classes = 10, .records_per_file = 7, .advice = "do this"}; }

std::string refusal(const std::vector<std::filesystem::path>& files) {
  return error_of([&] { read_cifar_files(files, small_format(), 0); });
}

}  // namespace

TEST_CASE("CIFAR files give back what was written") {
  const TemporaryFolder folder;
  const std::int64_t label_bytes = GENERATE(1, 2);
  CifarFormat format = small_format();
  format.label_bytes = label_bytes;
  format.classes = 9;
  const std::vector<std::filesystem::path> files{folder.write("a.bin", records(0, 7, label_bytes, 9)),
                                                 folder.write("b.bin", records(7, 7, label_bytes, 9))};
  const std::int64_t limit = GENERATE(0, 1, 7, 10, 14, 99);
  const ImageDataset dataset = read_cifar_files(files, format, limit);
  const std::int64_t expected = limit == 0 ? 14 : std::min<std::int64_t>(limit, 14);
  REQUIRE(dataset.images.shape() == Shape({expected, 3, 32, 32}));
  REQUIRE(dataset.labels.shape() == Shape({expected}));
  REQUIRE(dataset.images.storage()->tag() == MemoryTag::data);
  for (std::int64_t r = 0; r < expected; ++r) {
    REQUIRE(dataset.labels.data<std::int64_t>()[r] == r % 9);
    for (std::int64_t k = 0; k < kImage; ++k)
      if (dataset.images.data<std::uint8_t>()[r * kImage + k] != pixel(r, k)) FAIL("record " << r << " byte " << k);
  }
}

TEST_CASE("CIFAR records are read whole across the reads of a large file") {
  const TemporaryFolder folder;
  CifarFormat format = small_format();
  format.records_per_file = 1100;  // more than twice what one read takes
  const std::filesystem::path file = folder.write("a.bin", records(0, 1100, 1, 10));
  const ImageDataset dataset = read_cifar_files({&file, 1}, format, 0);
  for (const std::int64_t r : {0, 511, 512, 1023, 1024, 1099}) {
    CHECK(dataset.labels.data<std::int64_t>()[r] == r % 10);
    CHECK(dataset.images.data<std::uint8_t>()[r * kImage] == pixel(r, 0));
    CHECK(dataset.images.data<std::uint8_t>()[r * kImage + 3071] == pixel(r, 3071));
  }
}

TEST_CASE("damaged CIFAR files are refused with file, offset and advice") {
  const TemporaryFolder folder;
  const Bytes good = records(0, 7, 1, 10);
  SECTION("missing") {
    const std::string text = refusal({folder / "gone.bin"});
    CHECK_THAT(text, ContainsText("gone.bin: no such file") && ContainsText("do this"));
  }
  SECTION("a later file missing, found before the first is read") {
    CHECK_THAT(refusal({folder.write("a.bin", good), folder / "b.bin"}), ContainsText("b.bin: no such file"));
  }
  SECTION("a directory") {
    std::filesystem::create_directory(folder / "a.bin");
    CHECK_THAT(refusal({folder / "a.bin"}), ContainsText("is a directory, expected a file"));
  }
  SECTION("truncated, also by whole records") {
    const std::size_t cut = GENERATE(1u, 3073u, 10000u);
    const Bytes short_file(good.begin(), good.end() - cut);
    const std::string text = refusal({folder.write("a.bin", short_file)});
    CHECK_THAT(text, ContainsText("a.bin: truncated at offset " + std::to_string(7 * 3073 - cut)) &&
                         ContainsText("expected 21511 bytes (7 records of 3073 bytes)") && ContainsText("do this"));
  }
  SECTION("oversized") {
    CHECK_THAT(refusal({folder.write("a.bin", good + Bytes{0})}), ContainsText("oversized: has 21512 bytes"));
  }
  SECTION("empty") { CHECK_THAT(refusal({folder.write("a.bin", {})}), ContainsText("is empty")); }
  SECTION("label out of range") {
    Bytes bad = good;
    bad[3 * 3073] = 10;
    CHECK_THAT(refusal({folder.write("a.bin", bad)}),
               ContainsText("a.bin: record 3 (offset 9219) has label 10, expected 0 to 9"));
  }
  SECTION("not a regular file") { CHECK_THAT(refusal({"/dev/zero"}), ContainsText("is not a regular file")); }
  SECTION("negative limit") {
    const std::filesystem::path file = folder.write("a.bin", good);
    CHECK_THAT(error_of([&] { read_cifar_files({&file, 1}, small_format(), -1); }), ContainsText("limit of -1"));
  }
}

TEST_CASE("CIFAR folders: both places are searched, and errors say how to get the data") {
  const TemporaryFolder folder;
  SECTION("no folder") {
    const std::string text = error_of([&] { load_cifar10(folder / "none", Split::train); });
    CHECK_THAT(text, ContainsText("no such data directory") && ContainsText("run tandem data cifar10, or"));
  }
  SECTION("a file for a folder") {
    const auto file = folder.write("file", {1});
    CHECK_THAT(error_of([&] { load_cifar10(file, Split::train); }),
               ContainsText("is a file, expected a data directory"));
  }
  SECTION("an empty folder") {
    const std::string text = error_of([&] { load_cifar100(folder.path(), Split::test); });
    CHECK_THAT(text,
               ContainsText("no test.bin here (nor in cifar-100-binary)") && ContainsText("run tandem data cifar100"));
  }
  SECTION("the archive's folder is found, and a file of another size refused") {
    folder.write("cifar-10-batches-bin/test_batch.bin", records(0, 7, 1, 10));
    CHECK_THAT(error_of([&] { load_cifar10(folder.path(), Split::test); }),
               ContainsText("cifar-10-batches-bin/test_batch.bin: truncated at offset 21511") &&
                   ContainsText("run tandem data cifar10 --force, or"));
  }
  SECTION("a whole test set, with names, mean and deviation") {
    folder.write("cifar-100-binary/test.bin", records(0, 10000, 2, 100));
    const ImageDataset dataset = load_cifar100(folder.path(), Split::test, 150);
    check(dataset);
    CHECK(dataset.size() == 150);
    CHECK(dataset.classes() == 100);
    CHECK(dataset.class_names[0] == "apple");
    CHECK(dataset.class_names[99] == "worm");
    CHECK(dataset.labels.data<std::int64_t>()[149] == 49);
    CHECK(std::is_sorted(dataset.class_names.begin(), dataset.class_names.end()));
  }
}

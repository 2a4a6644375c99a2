// Safetensors files cut at every byte and with flipped bits.
#include "core/random.h"
#include "layers/safetensors.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/catch.h"

#include <cstring>

using namespace tandem;
using namespace tandem::layers;
using namespace tandem::test;

namespace {

/// A small file with metadata, several dtypes, a scalar and an empty tensor.
std::string good_file(const TemporaryDirectory& directory) {
  const std::string path = directory / "good.safetensors";
  write_safetensors(path,
                    {{"features.0.weight", Tensor::full({2, 3, 3, 3}, 0.5)},
                     {"count", Tensor::full({}, 7, {.dtype = DType::i64})},
                     {"half", Tensor::full({3}, 2, {.dtype = DType::f16})},
                     {"none", Tensor::empty({0, 4})}},
                    {{"format", "pt"}, {"epoch", "3"}});
  return read_bytes(path);
}

/// True if the file was read, false if it was refused with an Error; anything else ends the test.
bool accepted(const std::string& path) {
  try {
    read_safetensors(path);
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

TEST_CASE("a file cut short anywhere is refused") {
  const TemporaryDirectory directory;
  const std::string bytes = good_file(directory);
  const std::string path = directory / "cut.safetensors";
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    INFO(length << " of " << bytes.size() << " bytes");
    write_bytes(path, std::string_view(bytes).substr(0, length));
    CHECK_FALSE(accepted(path));
  }
  write_bytes(path, bytes + '\0');
  CHECK_FALSE(accepted(path));
  write_bytes(path, bytes);
  CHECK(accepted(path));
}

TEST_CASE("flipped bits in the header are read as another valid file or refused, never more") {
  const TemporaryDirectory directory;
  const std::string bytes = good_file(directory);
  const std::string path = directory / "flipped.safetensors";
  std::uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, bytes.data(), sizeof(header_bytes));
  int refused = 0;
  for (std::size_t bit = 0; bit < 8 * (8 + header_bytes); ++bit) {
    std::string damaged = bytes;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    write_bytes(path, damaged);
    refused += accepted(path) ? 0 : 1;
  }
  CHECK(refused > static_cast<int>(4 * header_bytes));  // only letters of names and metadata may differ unnoticed
}

TEST_CASE("random damage never does more than make a file unreadable") {
  const TemporaryDirectory directory;
  const std::string bytes = good_file(directory);
  const std::string path = directory / "damaged.safetensors";
  const RandomKey key{.seed = 2, .stream = RandomStream::test};
  std::uint64_t draw = 0;
  for (int round = 0; round < 1500; ++round) {
    std::string damaged = bytes;
    const std::uint32_t changes = 1 + key.below(draw++, 12);
    for (std::uint32_t change = 0; change < changes; ++change) {
      const std::size_t at = key.below(draw++, static_cast<std::uint32_t>(damaged.size()));
      const std::uint32_t kind = key.below(draw++, 3);
      const char byte = static_cast<char>(key.below(draw++, 256));
      if (kind == 0) damaged[at] = byte;
      if (kind == 1) damaged.insert(at, 1, byte);
      if (kind == 2) damaged.erase(at, 1);
    }
    write_bytes(path, damaged);
    accepted(path);
  }
  SUCCEED("no crash");
}

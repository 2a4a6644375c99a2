// Safetensors files cut at every byte and with flipped bits.
#include "tandem/core/random.h"
#include "tandem/layers/safetensors.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

#include <nlohmann/json.hpp>

#include <cstring>
#include <map>
#include <optional>
#include <tuple>

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

/// What a file gives, as plain data: dtype, shape and bytes by name, and the metadata.
struct Contents {
  std::map<std::string, std::tuple<std::string, std::vector<std::int64_t>, std::string>> tensors;
  Metadata metadata;

  friend bool operator==(const Contents&, const Contents&) = default;
};

/// What the file gives, or nothing where it is refused with an Error; anything else ends the test.
std::optional<Contents> contents_of(const std::string& path) {
  SafetensorsFile file;
  try {
    file = read_safetensors(path);
  } catch (const Error&) {
    return std::nullopt;
  }
  Contents contents{.tensors = {}, .metadata = file.metadata};
  const std::map<DType, std::string> names{{DType::f64, "F64"},   {DType::f32, "F32"}, {DType::f16, "F16"},
                                           {DType::bf16, "BF16"}, {DType::i64, "I64"}, {DType::i32, "I32"},
                                           {DType::u8, "U8"}};
  for (const auto& [name, tensor] : file.tensors) {
    const auto bytes = static_cast<std::size_t>(tensor.numel() * size_of(tensor.dtype()));
    const bool is_new =
        contents.tensors
            .insert({name,
                     {names.at(tensor.dtype()),
                      {tensor.shape().begin(), tensor.shape().end()},
                      bytes == 0 ? std::string() : std::string(static_cast<const char*>(tensor.raw_data()), bytes)}})
            .second;
    CHECK(is_new);
  }
  return contents;
}

/// What the bytes of a file say, read without our reader.
Contents said_by(const std::string& bytes) {
  std::uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, bytes.data(), sizeof(header_bytes));
  const auto header = nlohmann::json::parse(bytes.substr(8, header_bytes));
  const std::string data = bytes.substr(8 + header_bytes);
  Contents contents;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") {
      contents.metadata = entry.get<Metadata>();
      continue;
    }
    const auto begin = entry.at("data_offsets").at(0).get<std::size_t>();
    const auto end = entry.at("data_offsets").at(1).get<std::size_t>();
    contents.tensors[name] = {entry.at("dtype"), entry.at("shape"), data.substr(begin, end - begin)};
  }
  return contents;
}

/// Reads damaged bytes: true if they were accepted. Then the file is in order, and gives what its bytes say.
bool accepted(const std::string& path, const std::string& bytes) {
  write_bytes(path, bytes);
  const auto contents = contents_of(path);
  if (contents) CHECK(*contents == said_by(bytes));
  return contents.has_value();
}

}  // namespace

TEST_CASE("a file cut short anywhere is refused") {
  const TemporaryDirectory directory;
  const std::string bytes = good_file(directory);
  const std::string path = directory / "cut.safetensors";
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    INFO(length << " of " << bytes.size() << " bytes");
    CHECK_FALSE(accepted(path, bytes.substr(0, length)));
  }
  CHECK_FALSE(accepted(path, bytes + '\0'));
  CHECK(accepted(path, bytes));
}

/// The lengths of names, keys and texts, and with them everything that may not change.
Contents without_letters(const Contents& contents) {
  Contents result;
  for (const auto& [name, tensor] : contents.tensors) {
    auto [dtype, shape, bytes] = tensor;
    if (bytes.empty()) shape.assign(shape.size(), 0);  // any sizes beside a 0 hold nothing
    result.tensors[fmt::format("{} {}", std::get<2>(tensor), name.size())] = {dtype, shape, bytes};
  }
  std::size_t letters = 0;
  for (const auto& [key, value] : contents.metadata) letters += key.size() + value.size();
  result.metadata["letters"] = std::to_string(letters);
  return result;
}

TEST_CASE("a flipped bit in the header is refused, unless it is in a letter of a name or text or a size of nothing") {
  const TemporaryDirectory directory;
  const std::string bytes = good_file(directory);
  const std::string path = directory / "flipped.safetensors";
  const Contents original = said_by(bytes);
  std::uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, bytes.data(), sizeof(header_bytes));
  int refused = 0;
  for (std::size_t bit = 0; bit < 8 * (8 + header_bytes); ++bit) {
    std::string damaged = bytes;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    INFO("bit " << bit << ", header " << damaged.substr(8, header_bytes));
    if (!accepted(path, damaged)) {
      ++refused;
    } else {
      CHECK(without_letters(said_by(damaged)) == without_letters(original));
    }
  }
  CHECK(refused > static_cast<int>(4 * header_bytes));
}

TEST_CASE("a flipped bit in the data changes that bit of one tensor") {
  const TemporaryDirectory directory;
  const std::string bytes = good_file(directory);
  const std::string path = directory / "flipped.safetensors";
  std::uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, bytes.data(), sizeof(header_bytes));
  for (std::size_t bit = 8 * (8 + header_bytes); bit < 8 * bytes.size(); bit += 9) {  // all bits of a byte come up
    std::string damaged = bytes;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    CHECK(accepted(path, damaged));  // and gives what the bytes say
  }
}

TEST_CASE("a file with random damage gives what its bytes say, or is refused") {
  const TemporaryDirectory directory;
  const std::string bytes = good_file(directory);
  const std::string path = directory / "damaged.safetensors";
  const RandomKey key{.seed = 2, .stream = RandomStream::test};
  std::uint64_t draw = 0;
  int read = 0;
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
    read += accepted(path, damaged) ? 1 : 0;
  }
  CHECK(read > 0);
  CHECK(read < 150);
}

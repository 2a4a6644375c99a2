// What reading a safetensors file may take: headers written to need many times their own size.
#include "tandem/core/error.h"
#include "tandem/layers/safetensors.h"
#include "tests/layers/safetensors_bytes.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"
#include "tests/support/memory_of.h"
#include "tests/support/temporary_directory.h"

using namespace tandem;
using namespace tandem::layers;
using namespace tandem::test;

namespace {

constexpr std::int64_t kHeaderBytes = 24 * kMiB;  // eight times this is more than twice this and 64 MiB

/// Reads a file in a process of its own.
Reading read_file_apart(const std::string& path) {
  return read_apart([&] { read_safetensors(path); });
}

/// `head`, as many numbered pieces as fit, `tail`.
template <typename Piece>
std::string repeated(const std::string& head, Piece&& piece, const std::string& tail) {
  std::string text = head;
  for (std::int64_t i = 0; static_cast<std::int64_t>(text.size()) < kHeaderBytes; ++i) {
    if (i > 0) text += ',';
    text += piece(i);
  }
  return text + tail;
}

void check_refused(const std::string& header, const std::string& because) {
  const TemporaryDirectory directory;
  const std::string path = directory / "hostile.safetensors";
  write_bytes(path, safetensors_bytes(header, ""));
  const Reading reading = read_file_apart(path);
  CHECK_THAT(reading.error, ContainsText(because));
#if !defined(__SANITIZE_ADDRESS__)
  INFO("a file of " << header.size() / kMiB << " MiB took " << reading.grown / kMiB << " MiB");
  CHECK(reading.grown <= 2 * static_cast<std::int64_t>(header.size()) + 64 * kMiB);
#endif
}

std::string empty_tensor(std::int64_t i) {
  return fmt::format(R"("{:x}":{{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})", i);
}

}  // namespace

TEST_CASE("a header of countless tensors is refused before they take memory") {
  check_refused(repeated("{", empty_tensor, "}"), "more than 100000 tensors");
}

TEST_CASE("a header of countless metadata is refused before it takes memory") {
  check_refused(repeated(
                    R"({"__metadata__":{)", [](std::int64_t i) { return fmt::format(R"("{:x}":"")", i); }, "}}"),
                "more than 100000 entries of metadata");
}

TEST_CASE("a header of one endless text or number is refused before it takes memory") {
  const std::string letters(kHeaderBytes, 'a'), digits(kHeaderBytes, '1');
  std::string escapes;
  for (std::int64_t i = 0; i < kHeaderBytes / 6; ++i) escapes += "\\u0001";
  check_refused("{\"" + letters + "\":{}}", "longer than 4 MiB");
  check_refused("{\"" + letters, "longer than 4 MiB");
  check_refused(R"({"__metadata__":{"a":")" + letters + "\"}}", "longer than 4 MiB");
  check_refused(R"({"__metadata__":{"a":")" + escapes + "\"}}", "longer than 4 MiB");
  check_refused(R"({"a":{"dtype":")" + letters + "\"}}", "longer than 4 MiB");
  check_refused(R"({"a":{"shape":[)" + digits + "]}}", "longer than 4 MiB");
  check_refused(R"({"a":{"shape":[)" + letters + "]}}", "longer than 4 MiB");
}

TEST_CASE("long texts are read within twice the file's size, and as many tensors as are allowed within 64 MiB") {
  const TemporaryDirectory directory;
  const std::string path = directory / "large.safetensors", value(3 * kMiB, 'v');
  std::string header = R"({"__metadata__":{)";
  for (int i = 0; i < 16; ++i) header += fmt::format(R"({}"{}":"{}")", i > 0 ? "," : "", i, value);
  write_bytes(path, safetensors_bytes(header + "}}", ""));
  const Reading texts = read_file_apart(path);
  CHECK(texts.error.empty());

  for (const std::int64_t elements : {0, 1}) {
    std::string many = "{";
    for (std::int64_t i = 0; i < 100'000; ++i) {
      many += fmt::format(R"({}"{}":{{"dtype":"U8","shape":[{}],"data_offsets":[{},{}]}})", i > 0 ? "," : "", i,
                          elements, i * elements, (i + 1) * elements);
    }
    write_bytes(path, safetensors_bytes(many + "}", std::string(static_cast<std::size_t>(100'000 * elements), 'x')));
    const Reading tensors = read_file_apart(path);
    CHECK(tensors.error.empty());
#if !defined(__SANITIZE_ADDRESS__)
    INFO(elements << " elements each: " << tensors.grown << " bytes for a file of " << many.size());
    CHECK(tensors.grown <= 2 * static_cast<std::int64_t>(many.size()) + 64 * kMiB);
#endif
  }
#if !defined(__SANITIZE_ADDRESS__)
  CHECK(texts.grown <= 2 * static_cast<std::int64_t>(header.size()) + 64 * kMiB);
#endif
}

// Texts that grow by doubling have nearly twice the room that these need.
TEST_CASE("long names of many tensors are read within twice the file's size and 64 MiB") {
  const TemporaryDirectory directory;
  const std::string path = directory / "names.safetensors";
  std::string header = "{";
  for (int i = 0; i < 90'000; ++i)
    header += fmt::format(R"({}"{:0>961}":{{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})", i > 0 ? "," : "", i);
  write_bytes(path, safetensors_bytes(header + "}", ""));
  const Reading names = read_file_apart(path);
  CHECK(names.error.empty());
#if !defined(__SANITIZE_ADDRESS__)
  INFO("a file of " << header.size() / kMiB << " MiB took " << names.grown / kMiB << " MiB");
  CHECK(names.grown <= 2 * static_cast<std::int64_t>(header.size()) + 64 * kMiB);
#endif
}

TEST_CASE("what would not be read again is not written") {
  const TemporaryDirectory directory;
  const std::string path = directory / "large.safetensors", text(4 * kMiB, 'v');
  const auto refusal = [&](const NamedTensors& tensors, const Metadata& metadata) {
    return error_of([&] { write_safetensors(path, tensors, metadata); });
  };
  CHECK(refusal({{text, Tensor::zeros({1})}}, {{"key", text}}) == "no error");
  CHECK((read_safetensors(path).metadata.at("key") == text));  // not to be printed
  CHECK_THAT(refusal({{text + "v", Tensor::zeros({1})}}, {}), ContainsText("longer than 4 MiB"));
  CHECK_THAT(refusal({}, {{"key", text + "v"}}), ContainsText("longer than 4 MiB"));
  NamedTensors many(100'001, {"", Tensor::zeros({0})});
  for (std::size_t i = 0; i < many.size(); ++i) many[i].first = std::to_string(i);
  CHECK_THAT(refusal(many, {}), ContainsText("100001 tensors"));
}

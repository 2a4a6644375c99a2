// Safetensors files that must be refused, each by what is wrong with it.
#include "tandem/core/memory.h"
#include "tandem/layers/safetensors.h"
#include "tests/layers/safetensors_bytes.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

#include <sys/stat.h>

using namespace tandem;
using namespace tandem::layers;
using namespace tandem::test;

namespace {

struct BadFile {
  std::string name, bytes, complaint;
};

/// {"a": F32 [2] at [0, 8)} with its fields as given.
std::string entry(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return R"({"a":{"dtype":)" + dtype + R"(,"shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}";
}

std::string of_numbers(const std::string& shape, const std::string& offsets) {
  return safetensors_bytes(entry(R"("F32")", shape, offsets), std::string(8, 'x'));
}

std::string of_header(const std::string& header) { return safetensors_bytes(header, std::string(8, 'x')); }

/// A good entry for 8 bytes of data, to stand beside something bad.
const std::string kGood = R"({"dtype":"F32","shape":[2],"data_offsets":[0,8]})";

std::vector<BadFile> bad_files() {
  const std::string good = entry(R"("F32")", "[2]", "[0,8]");
  return {
      {"empty file", "", "8-byte header length"},
      {"seven bytes", std::string(7, '\0'), "8-byte header length"},
      {"header length zero", safetensors_bytes("", ""), "does not start with '{'"},
      {"header above the limit", safetensors_bytes(good, "", 100'000'001), "at most 100000000 are allowed"},
      {"header length of 2^63", std::string(7, '\0') + "\x80" + good, "at most 100000000 are allowed"},
      {"header length of 2^64 - 1", std::string(8, '\xff') + good, "at most 100000000 are allowed"},
      {"header longer than the file", safetensors_bytes(good, "", 5000), "truncated"},
      {"leading space", of_header(" " + good), "does not start with '{'"},
      {"array at the top", of_header("[]"), "does not start with '{'"},
      {"byte order mark", of_header("\xef\xbb\xbf" + good), "does not start with '{'"},
      {"header cut", of_header(good.substr(0, good.size() - 1)), "not JSON"},
      {"text after the header object", of_header(good + "x"), "not JSON"},
      {"second object", of_header(good + good), "not JSON"},
      {"null byte and more after the object", of_header(good + std::string("\0{}", 3)), "null byte"},
      {"comment", of_header("{/* */" + good.substr(1)), "not JSON"},
      {"single quotes", of_header("{'a':" + kGood + "}"), "not JSON"},
      {"name not UTF-8", of_header("{\"\xff\":" + kGood + "}"), "not UTF-8"},
      {"name with overlong UTF-8", of_header("{\"\xc0\xaf\":" + kGood + "}"), "not UTF-8"},
      {"name with half a surrogate pair", of_header(R"({"\ud800":)" + kGood + "}"), "not JSON"},
      {"name twice", of_header("{\"a\":" + kGood + ",\"a\":" + kGood + "}"), "\"a\" is there twice"},
      {"name twice, once escaped", of_header(R"({"a":)" + kGood + R"(,"\u0061":)" + kGood + "}"),
       "\"a\" is there twice"},
      {"tensor is a number", of_header(R"({"a":1})"), "a number under \"a\""},
      {"tensor is an array", of_header(R"({"a":[]})"), "an array"},
      {"tensor is null", of_header(R"({"a":null})"), "null under \"a\""},
      {"tensor is true", of_header(R"({"a":true})"), "true or false under \"a\""},
      {"tensor is a text", of_header(R"({"a":"F32"})"), "a text under \"a\""},
      {"metadata is a text", of_header(R"({"__metadata__":"x"})"), "a text under \"__metadata__\""},
      {"metadata value a number", of_header(R"({"__metadata__":{"k":1}})"), "a number under \"k\" of the metadata"},
      {"metadata value an object", of_header(R"({"__metadata__":{"k":{}}})"), "an object under \"k\" of the metadata"},
      {"metadata value null", of_header(R"({"__metadata__":{"k":null}})"), "null under \"k\" of the metadata"},
      {"metadata key twice", of_header(R"({"__metadata__":{"k":"1","k":"2"}})"),
       "\"k\" is there twice in the metadata"},
      {"metadata twice", of_header(R"({"__metadata__":{},"__metadata__":{}})"), "\"__metadata__\" is there twice"},
      {"no dtype", of_header(R"({"a":{"shape":[2],"data_offsets":[0,8]}})"), "has no dtype"},
      {"no shape", of_header(R"({"a":{"dtype":"F32","data_offsets":[0,8]}})"), "has no shape"},
      {"no offsets", of_header(R"({"a":{"dtype":"F32","shape":[2]}})"), "has no data_offsets"},
      {"field twice", of_header(R"({"a":{"dtype":"F32","dtype":"F32","shape":[2],"data_offsets":[0,8]}})"),
       "dtype\" twice"},
      {"unknown field", of_header(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8],"x":1}})"),
       "unknown key \"x\""},
      {"unknown dtype", of_header(entry(R"("F33")", "[2]", "[0,8]")), "unknown dtype \"F33\""},
      {"lower-case dtype", of_header(entry(R"("f32")", "[2]", "[0,8]")), "unknown dtype \"f32\""},
      {"unsupported dtype", of_header(entry(R"("I16")", "[4]", "[0,8]")), "unsupported dtype \"I16\""},
      {"unsupported dtype of 8 bits", of_header(entry(R"("F8_E4M3")", "[8]", "[0,8]")), "unsupported dtype"},
      {"dtype a number", of_header(entry("32", "[2]", "[0,8]")), "a number"},
      {"dtype an array", of_header(entry("[]", "[2]", "[0,8]")), "an array"},
      {"shape a number", of_numbers("2", "[0,8]"), "a number"},
      {"shape of texts", of_numbers(R"(["2"])", "[0,8]"), "a text in its shape"},
      {"shape nested", of_numbers("[[2]]", "[0,8]"), "an array in its shape"},
      {"negative size", of_numbers("[-2]", "[0,8]"), "-2"},
      {"negative zero", of_numbers("[-0]", "[0,8]"), "none below 0"},
      {"fractional size", of_numbers("[2.0]", "[0,8]"), "\"2.0\""},
      {"exponent size", of_numbers("[2e0]", "[0,8]"), "\"2e0\""},
      {"size of 2^63", of_numbers("[9223372036854775808]", "[0,8]"), "too large"},
      {"size of 2^64", of_numbers("[18446744073709551616]", "[0,8]"), "18446744073709551616"},
      {"product of sizes above 2^63", of_numbers("[4294967296,4294967296]", "[0,8]"), "too large to address"},
      {"product times element above 2^63", of_numbers("[4611686018427387904]", "[0,8]"), "too large to address"},
      {"empty with overflowing strides", of_numbers("[0,4294967296,4294967296]", "[0,0]"), "too large to address"},
      {"nine dimensions", of_numbers("[1,1,1,1,1,1,1,1,2]", "[0,8]"), "more than 8 dimensions"},
      {"one offset", of_numbers("[2]", "[0]"), "1 data_offsets instead of 2"},
      {"three offsets", of_numbers("[2]", "[0,4,8]"), "3 data_offsets instead of 2"},
      {"no offset", of_numbers("[2]", "[]"), "0 data_offsets instead of 2"},
      {"negative offset", of_numbers("[2]", "[-8,0]"), "-8"},
      {"offsets swapped", of_numbers("[2]", "[8,0]"), "before its begin"},
      {"offsets too far apart", of_numbers("[1]", "[0,8]"), "span 8"},
      {"offsets too near", of_numbers("[3]", "[0,8]"), "takes 12 bytes"},
      {"rank 0 with no data", of_numbers("[]", "[0,0]"), "takes 4 bytes"},
      {"offsets beyond the file", of_numbers("[4]", "[0,16]"), "truncated"},
      {"hole at the start", of_numbers("[1]", "[4,8]"), "4 bytes before tensor \"a\""},
      {"rest at the end", of_numbers("[1]", "[0,4]"), "4 bytes after the last tensor"},
      {"data without tensors", of_header("{}"), "8 bytes after the last tensor"},
      {"hole in the middle",
       safetensors_bytes(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
                         R"("b":{"dtype":"U8","shape":[2],"data_offsets":[3,5]}})",
                         "12345"),
       "1 bytes before tensor \"b\""},
      {"overlap",
       safetensors_bytes(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
                         R"("b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})",
                         "123"),
       "\"b\" begins at 1, inside"},
      {"same bytes twice",
       safetensors_bytes(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
                         R"("b":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})",
                         "12"),
       "inside another one"},
      {"empty tensor inside another one",
       safetensors_bytes(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
                         R"("b":{"dtype":"U8","shape":[0],"data_offsets":[1,1]}})",
                         "12"),
       "inside another one"},
      {"deep nesting", of_header("{\"a\":" + std::string(100'000, '[')), "an array"},
  };
}

}  // namespace

TEST_CASE("bad safetensors files are refused with a line that names file and fault") {
  const TemporaryDirectory directory;
  const std::string path = directory / "bad.safetensors";
  for (const BadFile& file : bad_files()) {
    INFO(file.name);
    write_bytes(path, file.bytes);
    std::string message;
    try {
      read_safetensors(path);
    } catch (const Error& error) {
      message = error.what();
    }
    CHECK_THAT(message, ContainsText(file.complaint));
    CHECK_THAT(message, ContainsText(path));
    CHECK(message.find('\n') == std::string::npos);
    CHECK(message.size() < 400);
  }
}

TEST_CASE("names from a file are escaped in messages") {
  const TemporaryDirectory directory;
  const std::string path = directory / "bad.safetensors";
  write_bytes(path, of_header(R"({"\n\u001b[31m\u00fc":{"dtype":"F32","shape":[1],"data_offsets":[0,8]}})"));
  CHECK_THROWS_WITH(read_safetensors(path), ContainsText(R"("\n\u001b[31m\u00fc")"));
  write_bytes(path,
              of_header("{\"" + std::string(5000, 'n') + R"(":{"dtype":"F32","shape":[1],"data_offsets":[0,8]}})"));
  CHECK_THROWS_WITH(read_safetensors(path), ContainsText("nnn...\""));
}

TEST_CASE("what is not a regular file is refused, without waiting") {
  const TemporaryDirectory directory;
  CHECK_THROWS_WITH(read_safetensors(directory / "none"), ContainsText("No such file"));
  CHECK_THROWS_WITH(read_safetensors(directory / "."), ContainsText("is a directory"));
  CHECK_THROWS_WITH(read_safetensors("/dev/zero"), ContainsText("not a regular file"));
  const std::string pipe = directory / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  CHECK_THROWS_WITH(read_safetensors(pipe), ContainsText("not a regular file"));
}

TEST_CASE("a file that claims terabytes costs no memory") {
  const TemporaryDirectory directory;
  const std::string path = directory / "huge.safetensors";
  reset_peak_memory();
  const std::int64_t before = memory_stats().current_total;
  write_bytes(path, of_numbers("[1099511627776]", "[0,4398046511104]"));
  CHECK_THROWS_WITH(read_safetensors(path), ContainsText("truncated"));
  CHECK(memory_stats().peak_total == before);
}

// Safetensors: what is written, what is read back, and files that stay whole.
#include "tandem/layers/file.h"
#include "tandem/layers/safetensors.h"
#include "tests/layers/safetensors_bytes.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <limits>

using namespace tandem;
using namespace tandem::layers;
using namespace tandem::test;

namespace {

std::string raw_elements(const Tensor& tensor) {
  const Tensor dense = tensor.contiguous();
  return {static_cast<const char*>(dense.raw_data()), static_cast<std::size_t>(dense.numel() * size_of(dense.dtype()))};
}

std::vector<float> counting(std::int64_t count) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(static_cast<float>(i));
  return values;
}

}  // namespace

TEST_CASE("the bytes of a file are those of the format") {
  const TemporaryDirectory directory;
  const std::string path = directory / "a.safetensors";
  write_safetensors(path, {{"w", Tensor::from<float>({1.0f, -2.0f}, {2, 1})}}, {{"format", "pt"}});
  const std::string header =
      R"({"__metadata__":{"format":"pt"},"w":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]}})";
  const std::string padding((8 - header.size() % 8) % 8, ' ');
  CHECK(read_bytes(path) == safetensors_bytes(header + padding, std::string("\0\0\x80\x3f\0\0\0\xc0", 8)));
}

TEST_CASE("tensors come back as they were, whatever dtype, rank and layout") {
  const TemporaryDirectory directory;
  const std::string path = directory / "a.safetensors";
  const Tensor image = Tensor::from(counting(2 * 3 * 4 * 5), {2, 3, 4, 5}, Layout::channels_last);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const NamedTensors tensors{
      {"u8", Tensor::from<std::uint8_t>({0, 255, 7}, {3})},
      {"image", image},
      {"view", image.transpose(1, 3).narrow(0, 1, 1)},
      {"f64", Tensor::from<double>({1e300, -0.0}, {1, 2})},
      {"special", Tensor::from<float>({nan, std::numeric_limits<float>::infinity(), -0.0f}, {3})},
      {"f16", Tensor::from<Half>({Half(1.5f)}, {1})},
      {"bf16", Tensor::from<BFloat16>({BFloat16(-3.0f), BFloat16(2.0f), BFloat16(1.0f)}, {3})},
      {"i32", Tensor::from<std::int32_t>({-5}, {1, 1, 1, 1, 1, 1, 1, 1})},
      {"scalar", Tensor::from<std::int64_t>({std::numeric_limits<std::int64_t>::min()}, {})},
      {"empty", Tensor::empty({3, 0, 2})},
      {"", Tensor::full({1}, 4)},
      {"n\u00e4me \"quoted\"\n", Tensor::full({1}, 5)},
  };
  const Metadata metadata{{"epoch", "3"}, {"\u00fc", "\n"}, {"", ""}};
  write_safetensors(path, tensors, metadata);
  const SafetensorsFile file = read_safetensors(path);
  CHECK(file.metadata == metadata);
  REQUIRE(file.tensors.size() == tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    INFO(tensors[i].first);
    CHECK(file.tensors[i].first == tensors[i].first);
    CHECK(describe(file.tensors[i].second) == describe(tensors[i].second));
    CHECK(raw_elements(file.tensors[i].second) == raw_elements(tensors[i].second));
  }
  CHECK(directory.entries() == 1);
}

TEST_CASE("tensors are aligned to their elements within the data") {
  const TemporaryDirectory directory;
  const std::string path = directory / "a.safetensors";
  write_safetensors(path, {{"a", Tensor::full({3}, 1, {.dtype = DType::u8})},
                           {"b", Tensor::full({1}, 2, {.dtype = DType::f64})},
                           {"c", Tensor::full({3}, 3, {.dtype = DType::f16})}});
  const std::string bytes = read_bytes(path);
  CHECK_THAT(bytes, ContainsText(R"("a":{"dtype":"U8","shape":[3],"data_offsets":[14,17]})"));
  CHECK_THAT(bytes, ContainsText(R"("b":{"dtype":"F64","shape":[1],"data_offsets":[0,8]})"));
  CHECK((bytes.size() - 17) % 8 == 0);
}

TEST_CASE("valid files that others may write are read") {
  const TemporaryDirectory directory;
  const std::string path = directory / "a.safetensors";
  SECTION("no tensors") {
    write_bytes(path, safetensors_bytes("{}", ""));
    CHECK(read_safetensors(path).tensors.empty());
  }
  SECTION("trailing spaces, any order of tensors and keys, white space, escapes") {
    write_bytes(path, safetensors_bytes(R"({ "b" : {"shape":[1], "data_offsets" : [2,3], "dtype":"U8"},
      "\u0061": {"data_offsets":[0,2],"shape":[2],"dtype":"U8"}}     )",
                                        "xyz"));
    const auto tensors = read_safetensors(path).tensors;
    CHECK(tensors[0].first == "b");
    CHECK(tensors[0].second.to_vector<int>() == std::vector<int>{'z'});
    CHECK(tensors[1].first == "a");
    CHECK(tensors[1].second.to_vector<int>() == std::vector<int>{'x', 'y'});
  }
  SECTION("empty tensors share a place") {
    write_bytes(path, safetensors_bytes(R"({"a":{"dtype":"F32","shape":[0],"data_offsets":[0,0]},)"
                                        R"("b":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                                        R"("c":{"dtype":"I64","shape":[7,0],"data_offsets":[1,1]}})",
                                        "x"));
    CHECK(read_safetensors(path).tensors.size() == 3);
  }
}

TEST_CASE("what cannot be written is refused and leaves nothing behind") {
  const TemporaryDirectory directory;
  const std::string path = directory / "a.safetensors";
  const Tensor one = Tensor::full({1}, 1);
  CHECK_THROWS_WITH(write_safetensors(path, {{"a", one}, {"a", one}}), ContainsText("\"a\" is given twice"));
  CHECK_THROWS_WITH(write_safetensors(path, {{"__metadata__", one}}), ContainsText("reserved"));
  CHECK_THROWS_WITH(write_safetensors(path, {{"a", Tensor()}}), ContainsText("undefined"));
  CHECK_THROWS_WITH(write_safetensors(path, {{"\xff", one}}), ContainsText("not UTF-8"));
  CHECK_THROWS_WITH(write_safetensors(path, {{"a", one}}, {{"k", "\xff"}}), ContainsText("not UTF-8"));
  CHECK_THROWS_WITH(write_safetensors("", {}), ContainsText("without a name"));
  CHECK_THROWS_WITH(write_safetensors(directory / ".", {}), ContainsText("is a directory"));
  CHECK_THROWS_WITH(write_safetensors(directory / "no/such.safetensors", {}), ContainsText("there is no directory"));
  CHECK(directory.entries() == 0);
  // A pipe of our own: root who gets the check wrong would replace a device of the system by a file.
  REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
  CHECK_THROWS_WITH(write_safetensors(path, {}), ContainsText("not a regular file"));
  CHECK(std::filesystem::is_fifo(path));
  CHECK(directory.entries() == 1);
}

TEST_CASE("a write that fails half-way keeps the old file and no other") {
  const TemporaryDirectory directory;
  const std::string path = directory / "a.safetensors";
  write_safetensors(path, {{"old", Tensor::full({4}, 1)}});
  const std::string old_bytes = read_bytes(path);

  // A limit on file sizes stands for the full disk.
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit small = before;
  small.rlim_cur = 4096;
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
  std::string message;
  try {
    write_safetensors(path, {{"new", Tensor::full({5000}, 2)}});
  } catch (const Error& error) {
    message = error.what();
  }
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, old_handler);

  CHECK_THAT(message, ContainsText(path + ": cannot write: File too large"));
  CHECK(read_bytes(path) == old_bytes);
  CHECK(directory.entries() == 1);
}

TEST_CASE("writing replaces a file in one move and follows links") {
  const TemporaryDirectory directory;
  const std::string path = directory / "a.safetensors", link = directory / "latest";
  write_safetensors(path, {{"a", Tensor::full({1}, 1)}});
  const std::string hard_link = directory / "reader";
  std::filesystem::create_hard_link(path, hard_link);  // what a reader that has the old file open sees
  std::filesystem::create_symlink("a.safetensors", link);
  write_safetensors(link, {{"b", Tensor::full({2}, 2)}});
  CHECK(std::filesystem::is_symlink(link));
  CHECK(read_safetensors(path).tensors.front().first == "b");
  CHECK(read_safetensors(hard_link).tensors.front().first == "a");
  CHECK(directory.entries() == 3);
}

TEST_CASE("writing follows links to what is not there yet") {
  const TemporaryDirectory directory, elsewhere;
  const std::string link = directory / "latest", path = elsewhere / "new.safetensors";
  std::filesystem::create_symlink("next", link);
  std::filesystem::create_symlink(path, directory / "next");
  write_safetensors(link, {{"a", Tensor::full({1}, 1)}});
  CHECK(std::filesystem::is_symlink(link));
  CHECK(std::filesystem::is_symlink(directory / "next"));
  CHECK(read_safetensors(path).tensors.front().first == "a");

  std::filesystem::create_symlink("b", directory / "a");
  std::filesystem::create_symlink("a", directory / "b");
  CHECK_THROWS_WITH(AtomicFile(directory / "a"), ContainsText("a: cannot write: too many symbolic links"));
  CHECK(std::filesystem::is_symlink(directory / "a"));
}

TEST_CASE("a file that cannot be there is refused before anything is written") {
  const TemporaryDirectory directory;
  CHECK_THROWS_WITH(AtomicFile(directory / std::string(300, 'a')), ContainsText("cannot write: File name too long"));
  CHECK_THROWS_WITH(AtomicFile(directory / "none/"), ContainsText("cannot write: there is no directory"));
  CHECK_THROWS_WITH(AtomicFile(directory / ""), ContainsText("cannot write: it is a directory"));
  CHECK(directory.entries() == 0);
}

TEST_CASE("what killed processes left of files is removed, and nothing else") {
  const TemporaryDirectory directory;
  const std::string folder = directory.path().string();
  const pid_t killed = ::fork();
  REQUIRE(killed >= 0);
  if (killed == 0) {
    AtomicFile file(directory / "weights");
    file.write("half", 4);
    ::kill(::getpid(), SIGKILL);
  }
  ::waitpid(killed, nullptr, 0);
  const std::string left = fmt::format("{}/.tandem-{}-0.tmp", folder, killed);
  CHECK(std::filesystem::exists(left));
  // Of a process that has this one's number, as processes of containers often do.
  write_bytes(fmt::format("{}/.tandem-{}-7.tmp", folder, ::getpid()), "");
  AtomicFile own(directory / "config.toml");
  own.write("whole", 5);
  // Other names, and what is no file.
  const std::vector<std::string> others = {
      ".tandem-1-0.tmp.txt",    ".tandem-x-0.tmp", ".tandem-1-.tmp", ".tandem--1-0.tmp",
      ".tandem-checkpoint-1-0", ".tandem-1.tmp",   "notes.tmp"};
  for (const std::string& name : others) write_bytes(directory / name, "");
  std::filesystem::create_directory(directory / ".tandem-1-1.tmp");
  std::filesystem::create_symlink("notes.tmp", directory / ".tandem-1-2.tmp");
  CHECK(remove_abandoned_files(folder) == 2);
  CHECK_FALSE(std::filesystem::exists(left));
  own.commit();
  CHECK(read_bytes(directory / "config.toml") == "whole");
  for (const std::string& name : others) CHECK(std::filesystem::exists(directory / name));
  CHECK(directory.entries() == static_cast<std::ptrdiff_t>(others.size()) + 3);
  CHECK(remove_abandoned_files(folder) == 0);
  CHECK(remove_abandoned_files(directory / "none") == 0);
}

TEST_CASE("a file that another process writes is left to it") {
  const TemporaryDirectory directory;
  int ready[2], go[2];
  REQUIRE(::pipe(ready) == 0);
  REQUIRE(::pipe(go) == 0);
  const pid_t writer = ::fork();
  REQUIRE(writer >= 0);
  char byte = 0;
  if (writer == 0) {
    AtomicFile file(directory / "weights");
    file.write("whole", 5);
    if (::write(ready[1], &byte, 1) != 1 || ::read(go[0], &byte, 1) != 1) ::_exit(1);
    file.commit();
    ::_exit(0);
  }
  CHECK(::read(ready[0], &byte, 1) == 1);
  CHECK(remove_abandoned_files(directory.path().string()) == 0);
  CHECK(::write(go[1], &byte, 1) == 1);
  int status = 0;
  ::waitpid(writer, &status, 0);
  CHECK(status == 0);
  CHECK(read_bytes(directory / "weights") == "whole");
  for (const int descriptor : {ready[0], ready[1], go[0], go[1]}) ::close(descriptor);
}

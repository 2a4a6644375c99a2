// Framing of event files, and what is left of them where they cannot be written.
#include "tandem/train/writers/tensorboard/event_file.h"

#include "tests/support/catch.h"
#include "tests/support/error_of.h"
#include "tests/support/temporary_directory.h"

#include "tandem/train/writers/tensorboard/tensorboard_writer.h"

#include <fcntl.h>
#include <sys/resource.h>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

using namespace tandem;
using namespace tandem::train;
using tandem::test::ContainsText;

namespace {

namespace fs = std::filesystem;

std::string contents_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

/// Lengths of the records, all of which must be whole.
std::vector<std::size_t> record_lengths(const std::string& file) {
  std::vector<std::size_t> lengths;
  for (std::size_t at = 0; at < file.size(); at += lengths.back() + 16) {
    std::uint64_t length = 0;
    REQUIRE(at + 16 <= file.size());
    std::memcpy(&length, file.data() + at, 8);
    lengths.push_back(length);
    REQUIRE(at + 16 + length <= file.size());
    std::uint32_t sum = 0;
    std::memcpy(&sum, file.data() + at + 12 + length, 4);
    REQUIRE(sum == train::detail::masked_crc32c(file.substr(at + 12, length)));
  }
  return lengths;
}

/// While it lives, no file grows beyond so many bytes.
struct FileSizeLimit {
  rlimit before{};
  explicit FileSizeLimit(rlim_t bytes) {
    std::signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before);
    const rlimit limit{bytes, before.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() { setrlimit(RLIMIT_FSIZE, &before); }
};

}  // namespace

TEST_CASE("masked CRC-32C is that of TensorFlow's files") {
  // Every event file of TensorFlow begins with a record of 24 bytes: this length, and this checksum of it.
  CHECK(train::detail::masked_crc32c(std::string_view("\x18\0\0\0\0\0\0\0", 8)) == 0x224b7fa3u);
  // The standard's test value, 0xe3069283, turned and added to.
  CHECK(train::detail::masked_crc32c("123456789") == ((0xe3069283u >> 15 | 0xe3069283u << 17) + 0xa282ead8u));
}

TEST_CASE("an event file begins with its version and the start of a session") {
  const test::TemporaryDirectory folder;
  const TensorBoardWriter writer(folder.path().string(), {.first_step = 5});
  const std::string file = contents_of(writer.path());
  CHECK(fs::path(writer.path()).filename().string().starts_with("events.out.tfevents."));
  REQUIRE(record_lengths(file).size() == 2);
  CHECK_THAT(file, ContainsText("brain.Event:2"));
  CHECK_THAT(file, ContainsText(std::string("\x10\x05\x3a\x02\x08\x01", 6)));  // step 5, session_log { status: START }
}

TEST_CASE("each writer makes a file of its own, named behind those that are there") {
  const test::TemporaryDirectory folder;
  std::vector<std::string> paths;
  for (int i = 0; i < 3; ++i) paths.push_back(TensorBoardWriter(folder.path().string()).path());
  test::write_bytes(folder / "events.out.tfevents.4000000000.elsewhere.1", "");  // as of a clock that was ahead
  paths.push_back(TensorBoardWriter(folder.path().string()).path());
  CHECK(std::ranges::is_sorted(paths));
  CHECK(fs::path(paths[3]).filename().string().starts_with("events.out.tfevents.4000000001."));
  CHECK(folder.entries() == 5);
}

TEST_CASE("events that cannot be written are told once, counted, and do not harm later ones") {
  const test::TemporaryDirectory folder;
  std::vector<std::string> told;
  TensorBoardWriter writer(folder.path().string(),
                           {.on_problem = [&](const std::string& problem) { told.push_back(problem); }});
  writer.add_scalar("a", 1.0, 1);
  writer.flush();
  CHECK(writer.problem().empty());
  const std::size_t before = contents_of(writer.path()).size();
  {
    const FileSizeLimit limit(before + 30);  // some bytes of the next record fit
    for (int step = 2; step <= 4; ++step) {
      writer.add_scalar("a", 1.0, step);
      writer.flush();
    }
  }
  REQUIRE(told.size() == 1);
  CHECK_THAT(told[0], ContainsText(writer.path() + ": cannot write: File too large"));
  CHECK(writer.problem() == told[0] + "; 3 events are missing");
  CHECK(contents_of(writer.path()).size() == before);
  writer.add_scalar("a", 1.0, 5);
  writer.flush();
  CHECK(record_lengths(contents_of(writer.path())).size() == 4);
  CHECK(told.size() == 1);
}

TEST_CASE("a full device is an error with the system's reason") {
  const int descriptor = ::open("/dev/full", O_WRONLY | O_CLOEXEC);
  if (descriptor < 0) return;  // not on this system
  train::detail::EventFile file("/dev/full", descriptor);
  file.add("record");
  CHECK_THAT(test::error_of([&] { file.flush(); }), ContainsText("/dev/full: cannot write: No space left on device"));
  CHECK(file.waiting_records() == 0);
}

TEST_CASE("a folder that is not there is an error at once") {
  const test::TemporaryDirectory folder;
  const std::string missing = folder / "missing";
  CHECK_THAT(test::error_of([&] { const TensorBoardWriter writer(missing); }),
             ContainsText(missing + "/events.out.tfevents."));
}

TEST_CASE("what is no PNG file is refused as an image") {
  const test::TemporaryDirectory folder;
  TensorBoardWriter writer(folder.path().string());
  CHECK(test::error_of([&] { writer.add_png("cat", "GIF89a", 1); }) == "image 'cat': is no PNG file");
  CHECK_THAT(test::error_of([&] { writer.add_image("cat", Tensor::zeros({3, 4, 4}), 1); }),
             ContainsText("encode_png: "));
}

TEST_CASE("events go on in a new file where theirs was removed") {
  const test::TemporaryDirectory folder;
  const std::string run = folder / "run";
  fs::create_directory(run);
  std::vector<std::string> told;
  TensorBoardWriter writer(run, {.on_problem = [&](const std::string& problem) { told.push_back(problem); }});
  writer.add_hparams({{"lr", 0.1}}, std::vector<std::string>{"loss"});
  writer.add_scalar("a", 1.0, 1);
  writer.flush();
  const std::string first = writer.path();
  fs::remove_all(run);
  writer.add_scalar("a", 1.0, 2);
  writer.flush();
  CHECK(record_lengths(contents_of(writer.path())).size() == 4);  // version, two of the settings, the scalar
  REQUIRE(told.size() == 1);
  CHECK_THAT(told[0], ContainsText(first + ": was removed while the run wrote to it; " + writer.path()));
  // The caller has noticed, and tells it: what waits is not lost.
  fs::remove_all(run);
  writer.add_scalar("a", 1.0, 3);
  writer.begin_again();
  writer.add_scalar("a", 1.0, 4);
  writer.flush();
  CHECK(record_lengths(contents_of(writer.path())).size() == 5);
  CHECK(told.size() == 1);
  CHECK(writer.problem().empty());
  // Where no file can be made, events are missing as on a full disk.
  fs::remove_all(run);
  test::write_bytes(run, "a file");
  for (int step = 5; step <= 6; ++step) {
    writer.add_scalar("a", 1.0, step);
    writer.flush();
  }
  REQUIRE(told.size() == 2);
  CHECK_THAT(told[1], ContainsText(run + ": was removed, and cannot be made again: "));
  CHECK(writer.problem() == told[1] + "; 2 events are missing");
  fs::remove(run);
  writer.add_scalar("a", 1.0, 7);
  writer.flush();
  CHECK(record_lengths(contents_of(writer.path())).size() == 4);
}

// What reading may take: files of a run and of measured choices, data sets and pictures that are written to need many
// times their own size.
#include "tandem/core/error.h"
#include "tandem/data/idx.h"
#include "tandem/train/curves_file.h"
#include "tandem/train/environment_file.h"
#include "tandem/train/message_costs_file.h"
#include "tandem/train/report/comparison.h"
#include "tandem/train/report/run_data.h"
#include "tandem/train/tuning_file.h"
#include "tests/support/memory_of.h"
#include "tests/support/temporary_directory.h"

#include <zlib.h>

#include <algorithm>
#include <functional>

using namespace tandem;
using namespace tandem::test;

namespace {

/// `head`, then `piece` again and again, `bytes` in all, `tail`.
std::string repeated(std::string head, std::string_view piece, std::int64_t bytes, std::string_view tail) {
  while (static_cast<std::int64_t>(head.size()) < bytes) head += piece;
  return head.append(tail);
}

void check_memory(const Reading& reading, std::int64_t most) {
  INFO("took " << reading.grown / kMiB << " MiB, at most " << most / kMiB << " are right: " << reading.error);
  CHECK((!kMemoryIsMeasured || reading.grown <= most));
}

/// As much as a large part of a file that is no log takes as text, and what JSON of one line takes.
constexpr std::int64_t kJsonFactor = 24;

std::string big_endian(std::uint32_t number) {
  return {static_cast<char>(number >> 24), static_cast<char>(number >> 16), static_cast<char>(number >> 8),
          static_cast<char>(number)};
}

/// gzip of `head` and so many zeros, made piece by piece.
std::string zipped_zeros(const std::string& head, std::int64_t zeros) {
  z_stream stream{};
  REQUIRE(deflateInit2(&stream, 9, Z_DEFLATED, MAX_WBITS + 16, 9, Z_DEFAULT_STRATEGY) == Z_OK);
  std::string packed, out(1 << 16, '\0');
  const auto add = [&](const std::string& bytes, int flush) {
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
    stream.avail_in = static_cast<uInt>(bytes.size());
    do {
      stream.next_out = reinterpret_cast<Bytef*>(out.data());
      stream.avail_out = static_cast<uInt>(out.size());
      deflate(&stream, flush);
      packed.append(out, 0, out.size() - stream.avail_out);
    } while (stream.avail_out == 0);
  };
  add(head, Z_NO_FLUSH);
  const std::string piece(1 << 20, '\0');
  for (std::int64_t done = 0; done < zeros; done += kMiB)
    add(piece.substr(0, static_cast<std::size_t>(std::min(kMiB, zeros - done))), Z_NO_FLUSH);
  add("", Z_FINISH);
  deflateEnd(&stream);
  return packed;
}

std::string images_header(std::uint32_t images, std::uint32_t side) {
  return big_endian(0x803) + big_endian(images) + big_endian(side) + big_endian(side);
}

Reading read_images(const TemporaryDirectory& folder, const std::string& bytes) {
  write_bytes(folder / "images.gz", bytes);
  write_bytes(folder / "labels", big_endian(0x801) + big_endian(1) + '\0');
  return read_apart([&] { data::read_idx_files(folder / "images.gz", folder / "labels", 10, "do this", 0); });
}

}  // namespace

TEST_CASE("a gzip file that promises more than it can hold takes no memory") {
  const TemporaryDirectory folder;
  const Reading reading = read_images(folder, zipped_zeros(images_header(10'000'000, 1024), 0));
  CHECK_THAT(reading.error, ContainsText("cannot hold the expected 10485760000016 bytes"));
  check_memory(reading, 16 * kMiB);
}

TEST_CASE("a gzip bomb of images is refused before it is unpacked") {
  const TemporaryDirectory folder;
  const std::string bomb = zipped_zeros(images_header(256, 1024), 256 * kMiB);
  REQUIRE(bomb.size() < kMiB);
  const Reading reading = read_images(folder, bomb);
  CHECK_THAT(reading.error, ContainsText("more than 100 times as many, as no data set does"));
  check_memory(reading, 16 * kMiB);
  // One that hides behind honest sizes is found where they end.
  const Reading hidden = read_images(folder, zipped_zeros(images_header(1, 4), 64 * kMiB));
  CHECK_THAT(hidden.error, ContainsText("oversized"));
  check_memory(hidden, 16 * kMiB);
}

TEST_CASE("a tuning file of countless values takes a bounded multiple of its size, a larger one is not read") {
  const TemporaryDirectory folder;
  const std::string path = folder / "tuning.json",
                    head = R"({"format":"tandem convolution tuning","version":2,"machine":"m","passes":[0)";
  const auto load = [&] { fail("{}", train::load_tuning(path, "m")); };
  write_bytes(path, repeated(head, ",0", 7 * kMiB, "]}"));
  const Reading numbers = read_apart(load);
  CHECK_THAT(numbers.error, ContainsText("ignored"));
  check_memory(numbers, 7 * kMiB * kJsonFactor);
  write_bytes(path, repeated(head, ",0", 9 * kMiB, "]}"));
  const Reading large = read_apart(load);
  CHECK_THAT(large.error, ContainsText("larger than any tuning file"));
  check_memory(large, 16 * kMiB);
}

TEST_CASE("a file of message costs takes a bounded multiple of its size, a larger one is not read") {
  const TemporaryDirectory folder;
  const std::string
      path = folder / "costs.json",
      head =
          R"({"format":"tandem message costs","version":1,"groups":[{"key":"k","start":0,"overhead":0,"shared_cores":0,"combine":[[1,0]],"within_host":[[1,0])";
  const auto load = [&] { fail("{}", train::load_message_costs(path, "k").problem); };
  write_bytes(path, repeated(head, ",[1,0]", kMiB / 2, "]}]}"));
  const Reading points = read_apart(load);
  CHECK_THAT(points.error, ContainsText("both must ascend"));
  check_memory(points, 16 * kMiB + kMiB / 2 * kJsonFactor);
  write_bytes(path, repeated(head, ",[1,0]", 2 * kMiB, "]}]}"));
  const Reading large = read_apart(load);
  CHECK_THAT(large.error, ContainsText("larger than any file of message costs"));
  check_memory(large, 16 * kMiB);
}

TEST_CASE("the files of a run are read in a bounded multiple of their size") {
  const TemporaryDirectory folder;
  const auto make_page = [&] { train::report::report_page(train::report::read_run(folder.path().string())); };
  const std::string log = "{\"record\":\"run\",\"config\":{}}\n";
  write_bytes(folder / "log.jsonl",
              log + repeated("{\"record\":\"epoch\",\"epoch\":1,\"x\":[0", ",0", 32 * kMiB, "]}\n"));
  const Reading line = read_apart(make_page);
  CHECK(line.error.empty());
  check_memory(line, 2 * 32 * kMiB + 16 * kMiB);  // such a line is left out
  const Reading curves = read_apart([&] { train::write_curves(folder / "log.jsonl", folder / "curves.csv"); });
  check_memory(curves, 3 * 32 * kMiB + 16 * kMiB);  // read twice: what the first line took is not all given back

  write_bytes(folder / "log.jsonl", log);
  for (const char* const name : {"evaluation.json", "environment.json"}) {
    write_bytes(folder / name, repeated("{\"x\":[0", ",0", 15 * kMiB, "]}"));
    const Reading values = read_apart(make_page);
    CHECK(values.error.empty());
    check_memory(values, 15 * kMiB * 2 * kJsonFactor);  // and its text in the page
    write_bytes(folder / name, repeated("{\"x\":[0", ",0", 40 * kMiB, "]}"));
    const Reading large = read_apart(make_page);
    CHECK(large.error.empty());
    check_memory(large, 16 * kMiB);
    const Reading status = read_apart([&] { train::read_run_status(folder / name); });
    check_memory(status, 16 * kMiB);
    std::filesystem::remove(folder / name);
  }
}

// Copying and printing a value of JSON call themselves for each level.
TEST_CASE("files of a run may be nested as deep as they like") {
  const TemporaryDirectory folder;
  constexpr std::size_t kLevels = 1'000'000;
  const std::string deep = std::string(kLevels, '[') + std::string(kLevels, ']');
  write_bytes(folder / "log.jsonl", "{\"record\":\"run\",\"config\":{\"deep\":" + deep +
                                        "}}\n{\"record\":\"epoch\",\"epoch\":1,\"train_loss\":2,\"x\":" + deep + "}\n");
  write_bytes(folder / "environment.json", "{\"command\":[" + deep + "],\"x\":" + deep + "}");
  write_bytes(folder / "evaluation.json", "{\"classes\":[" + deep + "]}");
  const auto run = train::report::read_run(folder.path().string());
  CHECK(run.epochs.size() == 1);
  CHECK_THAT(train::report::report_page(run), ContainsText("</html>"));
  train::write_curves(folder / "log.jsonl", folder / "curves.csv");
  CHECK_FALSE(train::read_run_status(folder / "environment.json"));
}

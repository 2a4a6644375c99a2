// Checkpoints: whole or not at all, and what is damaged is named.
#include "tandem/core/random.h"
#include "tandem/train/checkpoint/checkpoint.h"
#include "tandem/train/checkpoint/checkpoint_writer.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"
#include "tests/support/forked.h"
#include "tests/support/temporary_directory.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <map>

using namespace tandem;
using namespace tandem::test;
using train::Checkpoint;
using train::CheckpointFolder;

namespace fs = std::filesystem;

namespace {

Checkpoint checkpoint_of(double value, std::int64_t elements = 6) {
  return {.state = {{"model.conv.weight", Tensor::full({elements}, value)},
                    {"model.conv.bias", Tensor::full({2}, value, {.dtype = DType::f16})},
                    {"optimizer.0.step", Tensor::full({}, value, {.dtype = DType::i64})},
                    {"trainer.epoch_sums", Tensor::full({1, 3}, value, {.dtype = DType::f64})}},
          .metadata = {{"model", "small_cnn"}}};
}

std::map<std::string, std::vector<double>> values_of(const Checkpoint& checkpoint) {
  std::map<std::string, std::vector<double>> values;
  for (const auto& [name, tensor] : checkpoint.state) {
    const auto numbers = tensor.dtype() == DType::i64 ? std::vector<double>{tensor.item()} : tensor.to_vector<double>();
    values[name + std::string(name_of(tensor.dtype()))] = numbers;
  }
  return values;
}

/// The names in a folder.
std::vector<std::string> entries_of(const std::string& path) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(path)) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

TEST_CASE("a checkpoint is read as it was written, its model by PyTorch's names") {
  const TemporaryDirectory directory;
  const CheckpointFolder folder(directory / "run/checkpoints");
  CHECK(folder.steps().empty());
  CHECK_FALSE(folder.newest().checkpoint.has_value());
  folder.prepare();
  const Checkpoint written = checkpoint_of(3);
  folder.write(120, written);
  CHECK(entries_of(folder.path()) == std::vector<std::string>{"step-0000000120"});
  CHECK(entries_of(folder.path_of(120)) == std::vector<std::string>{"model.safetensors", "training.safetensors"});
  const auto found = folder.newest();
  REQUIRE(found.checkpoint.has_value());
  CHECK(found.path == folder.path_of(120));
  CHECK(found.passed_over.empty());
  CHECK(values_of(*found.checkpoint) == values_of(written));
  CHECK(found.checkpoint->metadata == written.metadata);
  const auto model = layers::read_safetensors(folder.path_of(120) + "/model.safetensors");
  CHECK(model.tensors[0].first == "conv.weight");
  CHECK(model.tensors[1].first == "conv.bias");
  CHECK(model.metadata.at("model") == "small_cnn");
}

TEST_CASE("a checkpoint's folder may be read by whom the user lets read folders") {
  const TemporaryDirectory directory;
  for (const mode_t mask : {mode_t{022}, mode_t{077}}) {
    const mode_t before = ::umask(mask);
    train::write_checkpoint(directory / "one", checkpoint_of(1));
    ::umask(before);
    const fs::perms wanted = fs::perms::all & ~static_cast<fs::perms>(mask);
    CHECK(fs::status(directory / "one").permissions() == wanted);
  }
}

TEST_CASE("the newest readable checkpoint is found, and what is wrong with newer ones is said") {
  const TemporaryDirectory directory;
  const CheckpointFolder folder(directory.path().string());
  for (const std::int64_t step : {9, 10, 200, 1000000000}) folder.write(step, checkpoint_of(static_cast<double>(step)));
  fs::create_directories(directory / "step-12");  // not one of ours: another number of digits
  fs::create_directories(directory / "step-0000002000x");
  CHECK(folder.steps() == std::vector<std::int64_t>{9, 10, 200, 1000000000});
  fs::remove(folder.path_of(1000000000) + "/training.safetensors");
  const std::string damaged = folder.path_of(200) + "/model.safetensors";
  std::string bytes = read_bytes(damaged);
  bytes.back() = static_cast<char>(bytes.back() ^ 4);
  write_bytes(damaged, bytes);
  const auto found = folder.newest();
  REQUIRE(found.checkpoint.has_value());
  CHECK(found.path == folder.path_of(10));
  REQUIRE(found.passed_over.size() == 2);
  CHECK_THAT(found.passed_over[0], ContainsText("step-1000000000/training.safetensors: cannot open"));
  CHECK_THAT(found.passed_over[1], ContainsText("model.safetensors: damaged: tensor conv."));
}

TEST_CASE("a checkpoint takes the place of another one of its step, and old ones are removed") {
  const TemporaryDirectory directory;
  const CheckpointFolder folder(directory.path().string());
  for (std::int64_t step = 1; step <= 6; ++step) folder.write(step, checkpoint_of(0));
  folder.write(5, checkpoint_of(7));
  CHECK(values_of(train::read_checkpoint(folder.path_of(5))) == values_of(checkpoint_of(7)));
  folder.keep(2, {3, 50});
  CHECK(folder.steps() == std::vector<std::int64_t>{3, 5, 6});
  CHECK(directory.entries() == 3);
  folder.keep(9);
  CHECK(folder.steps().size() == 3);
  CHECK_THAT(error_of([&] { folder.keep(0); }), ContainsText("cannot keep 0; keep 1 or more"));
}

TEST_CASE("a bit flipped in the data, a cut and a file of another checkpoint are noticed") {
  const TemporaryDirectory directory;
  const std::string path = directory / "one", other = directory / "other";
  train::write_checkpoint(path, checkpoint_of(1));
  train::write_checkpoint(other, checkpoint_of(2, 7));
  for (const std::string name : {"/model.safetensors", "/training.safetensors"}) {
    const std::string good = read_bytes(path + name);
    std::uint64_t header = 0;
    std::memcpy(&header, good.data(), sizeof(header));
    for (std::size_t bit = 8 * (8 + header); bit < 8 * good.size(); ++bit) {
      std::string bytes = good;
      bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
      write_bytes(path + name, bytes);
      CHECK_THAT(error_of([&] { train::read_checkpoint(path); }), ContainsText("damaged: tensor"));
    }
    for (std::size_t size = 0; size < good.size(); size += 13) {
      write_bytes(path + name, good.substr(0, size));
      CHECK_THAT(error_of([&] { train::read_checkpoint(path); }), ContainsText(name));
    }
    write_bytes(path + name, good);
  }
  const std::string training = read_bytes(path + "/training.safetensors");
  write_bytes(path + "/training.safetensors", read_bytes(other + "/training.safetensors"));
  CHECK_THAT(error_of([&] { train::read_checkpoint(path); }),
             ContainsText("training.safetensors is of another checkpoint than model.safetensors"));
  write_bytes(path + "/training.safetensors", training);
  layers::write_safetensors(path + "/model.safetensors", {{"conv.weight", Tensor::zeros({2})}});
  CHECK_THAT(error_of([&] { train::read_checkpoint(path); }), ContainsText("has no hash of tensor conv.weight"));
  CHECK_THAT(error_of([&] { train::read_checkpoint(directory / "none"); }),
             ContainsText("there is no checkpoint here"));
}

TEST_CASE("a flip anywhere in a checkpoint's header is refused or changes no tensor") {
  const TemporaryDirectory directory;
  const std::string path = directory / "one";
  const Checkpoint written = checkpoint_of(1);
  train::write_checkpoint(path, written);
  const std::string file = path + "/training.safetensors", good = read_bytes(file);
  for (std::uint64_t i = 0; i < 10'000; ++i) {
    const RandomKey random{.seed = 5, .step = static_cast<std::uint32_t>(i)};
    std::string bytes = good;
    const auto at = static_cast<std::size_t>(random.uniform(0) * static_cast<float>(good.size()));
    bytes[at] = static_cast<char>(bytes[at] ^ (1 << static_cast<int>(random.uniform(1) * 8)));
    write_bytes(file, bytes);
    try {
      const Checkpoint read = train::read_checkpoint(path);
      CHECK(values_of(read) == values_of(written));
    } catch (const Error& error) {
      CHECK_THAT(error.what(), ContainsText("training.safetensors"));
    }
  }
}

TEST_CASE("where a checkpoint cannot be written, the one before stays, and nothing else") {
  const TemporaryDirectory directory;
  const CheckpointFolder folder(directory.path().string());
  folder.write(1, checkpoint_of(1));
  SECTION("a file is in its way, which is kept aside and removed") {
    write_bytes(folder.path_of(2), "no folder");
    folder.write(2, checkpoint_of(2));
    CHECK(folder.newest().path == folder.path_of(2));
    CHECK(directory.entries() == 2);
  }
  SECTION("files may not be as large") {
    // In another process: the limit is one of the whole process.
    CHECK(exit_code_forked([&] {
            std::signal(SIGXFSZ, SIG_IGN);
            const rlimit small{1 << 16, 1 << 16};
            ::setrlimit(RLIMIT_FSIZE, &small);
            const std::string error = error_of([&] { folder.write(2, checkpoint_of(2, 1 << 20)); });
            const std::string expected = folder.path_of(2) + "/model.safetensors: cannot write: File too large";
            return error.find(expected) != std::string::npos ? 0 : 1;
          }) == 0);
    CHECK(folder.steps() == std::vector<std::int64_t>{1});
    CHECK(directory.entries() == 1);
  }
  SECTION("its folder is gone") {
    const CheckpointFolder gone(directory / "gone");
    CHECK_THAT(error_of([&] { gone.write(1, checkpoint_of(1)); }),
               ContainsText("gone: cannot write a checkpoint: No such file or directory"));
  }
  SECTION("its folder is a file") {
    write_bytes(directory / "file", "");
    const CheckpointFolder file(directory / "file");
    CHECK_THAT(error_of([&] { file.prepare(); }), ContainsText("file: cannot make this folder for checkpoints"));
  }
  SECTION("metadata has a reserved name") {
    Checkpoint checkpoint = checkpoint_of(2);
    checkpoint.metadata["xxh3.weight"] = "0";
    CHECK_THAT(error_of([&] { folder.write(2, checkpoint); }),
               ContainsText("metadata may not have the key xxh3.weight"));
    CHECK(directory.entries() == 1);
  }
  CHECK(values_of(train::read_checkpoint(folder.path_of(1))) == values_of(checkpoint_of(1)));
}

TEST_CASE("a writer killed at any moment leaves whole checkpoints, and prepare() removes what it left") {
  const TemporaryDirectory directory;
  const CheckpointFolder folder(directory.path().string());
  folder.write(0, checkpoint_of(0, 1 << 16));
  for (int kill = 0; kill < 12; ++kill) {
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      for (std::int64_t step = 1;; ++step) {
        folder.write(step % 3, checkpoint_of(static_cast<double>(kill * 1000 + step), 1 << 16));
        folder.keep(2);
      }
    }
    ::usleep(static_cast<useconds_t>(2000 + kill * 1700));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    const auto found = folder.newest();
    CHECK(found.checkpoint.has_value());
    CHECK(found.passed_over.empty());
    folder.prepare();
    CHECK(static_cast<std::size_t>(directory.entries()) == folder.steps().size());
  }
}

TEST_CASE("a writer copies what it is given, keeps the newest and the best, and says what went wrong") {
  const TemporaryDirectory directory;
  const CheckpointFolder folder(directory / "checkpoints");
  {
    train::CheckpointWriter writer(folder, 2);
    const Checkpoint live = checkpoint_of(1, 1 << 20);
    for (std::int64_t step = 1; step <= 6; ++step) {
      for (const auto& [name, tensor] : live.state)
        tensor.copy_from(Tensor::full(tensor.shape(), static_cast<double>(step), tensor.options()));
      writer.write(step, live, step == 2 || step == 3);
    }
    writer.finish();
    CHECK(folder.steps() == std::vector<std::int64_t>{3, 5, 6});
    for (const std::int64_t step : folder.steps())
      CHECK(values_of(train::read_checkpoint(folder.path_of(step))) ==
            values_of(checkpoint_of(static_cast<double>(step), 1 << 20)));
    CHECK(writer.take_problem().empty());
    fs::remove_all(folder.path());
    write_bytes(folder.path(), "a file");
    writer.write(7, live);
    writer.finish();
    CHECK_THAT(writer.take_problem(),
               ContainsText("checkpoints: cannot make this folder for checkpoints: Not a directory"));
    CHECK(writer.take_problem().empty());
    fs::remove(folder.path());
    writer.write(8, live);  // finished by the destructor
  }
  CHECK(folder.steps() == std::vector<std::int64_t>{8});
  CHECK_THAT(error_of([&] { train::CheckpointWriter(folder, 0); }), ContainsText("cannot keep 0; keep 1 or more"));
}

// Weights that cannot be written where they should be, and files that are damaged.
#include "tandem/layers/linear.h"
#include "tandem/train/weights.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"
#include "tests/support/temporary_directory.h"

#include <stdlib.h>  // setenv

#include <filesystem>
#include <optional>

using namespace tandem;
namespace fs = std::filesystem;

namespace {

/// While it lives, this folder is the current one, and that of temporary files.
class Inside {
 public:
  explicit Inside(const fs::path& folder) : before_(fs::current_path()) {
    if (const char* place = std::getenv("TMPDIR")) place_ = place;
    fs::current_path(folder);
    setenv("TMPDIR", folder.c_str(), 1);
  }
  ~Inside() {
    fs::current_path(before_);
    place_ ? setenv("TMPDIR", place_->c_str(), 1) : unsetenv("TMPDIR");
  }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

 private:
  fs::path before_;
  std::optional<std::string> place_;
};

NamedTensors tensors() { return {{"w", Tensor::full({2}, 1.0)}}; }

}  // namespace

TEST_CASE("weights whose folder is gone are written to a new one") {
  const test::TemporaryDirectory folder;
  const Inside inside(folder.path());
  const train::SavedWeights saved = train::save_weights("gone/w.safetensors", tensors(), {});
  CHECK(saved.problem.find("there is no directory") != std::string::npos);
  CHECK(layers::read_safetensors(saved.path).tensors.size() == 1);
}

TEST_CASE("weights that can be written nowhere leave nothing behind") {
  const test::TemporaryDirectory folder;
  const Inside inside(folder.path());
  const train::SavedWeights saved = train::save_weights(std::string(300, 'w'), tensors(), {});  // too long a name
  CHECK(saved.path.empty());
  CHECK(saved.problem.find("cannot write") != std::string::npos);
  CHECK(fs::is_empty(folder.path()));
}

TEST_CASE("weights with a flipped bit are refused, those of other programs have no hashes") {
  const test::TemporaryDirectory folder;
  layers::Initializer initializer(1);
  layers::Linear model({.in = 3, .out = 2}, initializer);
  const std::string path = folder / "w.safetensors";
  REQUIRE(train::save_weights(path, model.state_dict(), {{"model", "linear"}}).problem.empty());
  CHECK(train::load_weights(model, "linear", path).at("model") == "linear");
  std::string bytes = test::read_bytes(path);
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  test::write_bytes(path, bytes);
  CHECK_THAT(test::error_of([&] { train::load_weights(model, "linear", path); }),
             test::ContainsText("w.safetensors: damaged: tensor"));
  const std::string other = folder / "other.safetensors";
  layers::write_safetensors(other, model.state_dict());
  train::load_weights(model, "linear", other);
}

// Weights that cannot be written where they should be.
#include "tandem/train/weights.h"
#include "tests/support/catch.h"
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

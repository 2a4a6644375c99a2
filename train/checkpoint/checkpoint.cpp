// Checkpoints as folders.
#include "tandem/train/checkpoint/checkpoint.h"

#include "tandem/core/error.h"
#include "tandem/layers/file.h"
#include "tandem/train/tensor_hashes.h"

#include <fcntl.h>
#include <stdio.h>     // renameat2
#include <sys/file.h>  // flock
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <string_view>
#include <system_error>

namespace tandem::train {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kModelFile = "model.safetensors", kTrainingFile = "training.safetensors";
constexpr std::string_view kModelPrefix = "model.", kStepPrefix = "step-";
const std::string kTrainingHashKey = "training.hash";  // of the model's file: which training state goes with it
constexpr std::string_view kTemporaryPrefix = ".tandem-checkpoint-";
constexpr int kStepDigits = 10;

std::string text_of(int error) { return std::generic_category().message(error); }

/// A new folder, removed again unless it was put in another place. Its permissions are those of any folder of the
/// user's (mkdtemp's would be the owner's alone).
class TemporaryFolder {
 public:
  explicit TemporaryFolder(const fs::path& parent) {
    for (int attempt = 0;; ++attempt) {
      path_ = parent / fmt::format("{}{}-{}", kTemporaryPrefix, ::getpid(), attempt);
      if (::mkdir(path_.c_str(), 0777) == 0) return;
      require(errno == EEXIST, "{}: cannot write a checkpoint: {}; {}", parent.string(), text_of(errno),
              layers::remedy_of(errno));
    }
  }
  ~TemporaryFolder() {
    std::error_code none;
    fs::remove_all(path_, none);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

/// Keeps a folder for itself. Of two descriptors of it, whosever they are, one can.
class FolderLock {
 public:
  explicit FolderLock(const std::string& path) : descriptor_(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    if (descriptor_ < 0 || ::flock(descriptor_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return;
    ::close(descriptor_);
    fail("{}: another run writes its checkpoints there: wait for its end, or name another folder", path);
  }
  ~FolderLock() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int descriptor_;
};

/// Puts `from` in the place of `to`; what was there is then at `from`.
void exchange(const fs::path& from, const fs::path& to) {
  std::error_code none;
  const unsigned flags = fs::exists(fs::symlink_status(to, none)) ? RENAME_EXCHANGE : RENAME_NOREPLACE;
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), flags) == 0) return;
  if (errno == EINVAL || errno == ENOSYS) {  // a file system that cannot: then there is a moment without either
    const fs::path aside = from.string() + ".old";
    std::error_code error;
    const bool has_old = flags == RENAME_EXCHANGE;
    if (has_old) fs::rename(to, aside, error);
    if (!error) {
      fs::rename(from, to, error);
      if (error && has_old) fs::rename(aside, to, none);  // the old one stays
      if (!error && has_old) fs::rename(aside, from, error);
    }
    if (!error) return;
    errno = error.value();
  }
  fail("{}: cannot write a checkpoint: {}; {}", to.string(), text_of(errno), layers::remedy_of(errno));
}

/// Adds the file's tensors to `checkpoint`, under a prefix. Returns the file's hash.
std::string read_file(const fs::path& path, std::string_view prefix, Checkpoint& checkpoint) {
  const auto [file, hash] = read_hashed(path.string(), HashesAre::required);
  for (const auto& [key, value] : file.metadata) checkpoint.metadata[key] = value;
  for (const auto& [name, tensor] : file.tensors)
    checkpoint.state.emplace_back(fmt::format("{}{}", prefix, name), tensor);
  return hash;
}

/// The step of a folder's name; nothing for other names.
std::optional<std::int64_t> step_of(std::string_view name) {
  if (!name.starts_with(kStepPrefix)) return std::nullopt;
  name.remove_prefix(kStepPrefix.size());
  std::int64_t step = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), step);
  if (error != std::errc() || end != name.data() + name.size() || step < 0) return std::nullopt;
  return step;
}

}  // namespace

bool write_checkpoint(const std::string& path, const Checkpoint& checkpoint, const std::stop_token& stop) {
  NamedTensors model, training;
  for (const auto& [name, tensor] : checkpoint.state) {
    if (name.starts_with(kModelPrefix))
      model.emplace_back(name.substr(kModelPrefix.size()), tensor);
    else
      training.emplace_back(name, tensor);
  }
  const fs::path target = fs::path(path).has_filename() ? fs::path(path) : fs::path(path).parent_path();
  const fs::path parent = target.has_parent_path() ? target.parent_path() : fs::path(".");
  const TemporaryFolder temporary(parent);
  try {
    layers::Metadata metadata = checkpoint.metadata;
    if (stop.stop_requested()) return false;
    metadata[kTrainingHashKey] = write_hashed((temporary.path() / kTrainingFile).string(), training, metadata);
    if (stop.stop_requested()) return false;
    write_hashed((temporary.path() / kModelFile).string(), model, metadata);
  } catch (const Error& error) {
    // By the name that the checkpoint would have had: the temporary one is gone when this is read.
    std::string text = error.what();
    const std::string place = temporary.path().string();
    if (const std::size_t at = text.find(place); at != std::string::npos)
      text.replace(at, place.size(), target.string());
    throw Error(text);
  }
  exchange(temporary.path(), target);
  if (const int error = layers::sync_directory(parent.string()); error != 0)
    fail("{}: cannot write a checkpoint: {}; {}", parent.string(), text_of(error), layers::remedy_of(error));
  return true;
}

Checkpoint read_checkpoint(const std::string& path) {
  std::error_code none;
  require(fs::is_directory(path, none), "{}: there is no checkpoint here: it would be a folder with {} and {}", path,
          kModelFile, kTrainingFile);
  Checkpoint checkpoint;
  read_file(fs::path(path) / kModelFile, kModelPrefix, checkpoint);
  const std::string hash = read_file(fs::path(path) / kTrainingFile, "", checkpoint);
  // Of a checkpoint that an older program wrote there is none.
  if (const auto expected = checkpoint.metadata.extract(kTrainingHashKey))
    require(expected.mapped() == hash, "{}: {} is of another checkpoint than {}; take another checkpoint", path,
            kTrainingFile, kModelFile);
  return checkpoint;
}

std::shared_ptr<const void> CheckpointFolder::prepare() const {
  std::error_code error;
  fs::create_directories(path_, error);
  require(!error, "{}: cannot make this folder for checkpoints: {}", path_, error.message());
  auto lock = std::make_shared<const FolderLock>(path_);  // what another writer has in work is left alone
  std::vector<fs::path> left;
  for (fs::directory_iterator entry(path_, error), end; !error && entry != end; entry.increment(error)) {
    if (entry->path().filename().string().starts_with(kTemporaryPrefix)) left.push_back(entry->path());
  }
  for (const fs::path& path : left) fs::remove_all(path, error);
  require(!error, "{}: cannot clear this folder: {}", path_, error.message());
  return lock;
}

std::string CheckpointFolder::path_of(std::int64_t step) const {
  return (fs::path(path_) / fmt::format("{}{:0{}}", kStepPrefix, step, kStepDigits)).string();
}

bool CheckpointFolder::write(std::int64_t step, const Checkpoint& checkpoint, const std::stop_token& stop) const {
  return write_checkpoint(path_of(step), checkpoint, stop);
}

void CheckpointFolder::remove(std::int64_t step) const {
  // Under a temporary name first: a folder that is half gone is no checkpoint. A new name needs no room on a full disk.
  const fs::path aside = fs::path(path_) / fmt::format("{}{}-removed-{}", kTemporaryPrefix, ::getpid(), step);
  std::error_code error;
  fs::rename(path_of(step), aside, error);
  if (!error) fs::remove_all(aside, error);
  require(!error, "{}: cannot remove this checkpoint: {}", path_of(step), error.message());
}

void CheckpointFolder::keep(std::int64_t count, const std::vector<std::int64_t>& kept) const {
  require(count >= 1, "checkpoints: cannot keep {}; keep 1 or more", count);
  std::vector<std::int64_t> all = steps();
  all.resize(all.size() - std::min(all.size(), static_cast<std::size_t>(count)));
  for (const std::int64_t step : all) {
    if (std::find(kept.begin(), kept.end(), step) == kept.end()) remove(step);
  }
}

std::vector<std::int64_t> CheckpointFolder::steps() const {
  std::vector<std::int64_t> steps;
  std::error_code error;
  for (fs::directory_iterator entry(path_, error), end; !error && entry != end; entry.increment(error)) {
    const std::optional<std::int64_t> step = step_of(entry->path().filename().string());
    if (step && path_of(*step) == entry->path().string()) steps.push_back(*step);
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}

FoundCheckpoint CheckpointFolder::newest() const {
  FoundCheckpoint found;
  std::vector<std::int64_t> all = steps();
  std::reverse(all.begin(), all.end());
  for (const std::int64_t step : all) {
    found.path = path_of(step);
    try {
      found.checkpoint = read_checkpoint(found.path);
      return found;
    } catch (const Error& error) {
      found.passed_over.emplace_back(error.what());
    }
  }
  found.path.clear();
  return found;
}

}  // namespace tandem::train

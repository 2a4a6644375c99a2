// Checkpoints: all that a run needs to go on, each in a folder that is there whole or not at all.
//
//   step-0000000120/model.safetensors     the model's state dict, with PyTorch's names and shapes
//   step-0000000120/training.safetensors  the other entries of Trainer::state_dict()
//
// Each file's metadata has "xxh3.<name>", a hash of every tensor (16 hexadecimal digits), and what the program added;
// that of the model's file also "training.hash", a hash of the other file's hashes.
// Example:
//     #include "tandem/train/trainer.h"
//     void save(Trainer& trainer, const comm::ProcessGroup& group, const CheckpointFolder& folder, std::int64_t step) {
//       const NamedTensors state = trainer.state_dict();  // on all ranks
//       if (group.rank() == 0) folder.write(step, {state, {{"model", "resnet18"}}});
//     }
//     void go_on(Trainer& trainer, const CheckpointFolder& folder) {
//       const FoundCheckpoint found = folder.newest();  // on all ranks
//       if (found.checkpoint) trainer.load_state_dict(found.checkpoint->state);
//     }
#pragma once

#include "tandem/core/named_tensors.h"
#include "tandem/layers/safetensors.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace tandem::train {

/// What is in a checkpoint's folder.
struct Checkpoint {
  NamedTensors state;         ///< as Trainer::state_dict() gives it
  layers::Metadata metadata;  ///< of the program; no key may begin with "xxh3.", or be "training.hash"
};

/// Writes the folder `path`, in a folder that is there. At every moment, `path` holds what it held before or the whole
/// new checkpoint: that goes to a temporary folder beside it, to disk, and is then renamed. (There is a moment without
/// either on a file system that cannot exchange names.) True once it is there. Returns false where `stop` was
/// requested, which is looked at before each file. Throws Error where writing fails, as on a full disk. Neither leaves
/// anything of the new checkpoint.
bool write_checkpoint(const std::string& path, const Checkpoint& checkpoint, const std::stop_token& stop = {});

/// Reads a checkpoint's folder. Throws Error, naming the file and the tensor, where a file is missing or damaged, or
/// has a tensor whose hash is not the one that was written, and where the two files are not of one checkpoint.
Checkpoint read_checkpoint(const std::string& path);

/// What CheckpointFolder::newest() found.
struct FoundCheckpoint {
  std::optional<Checkpoint> checkpoint;  ///< nothing: none can be read
  std::string path;                      ///< of the checkpoint's folder; empty: none can be read
  std::vector<std::string> passed_over;  ///< what is wrong with newer ones
};

/// The checkpoints of one run, numbered by step.
class CheckpointFolder {
 public:
  /// Of a folder that need not be there yet.
  explicit CheckpointFolder(std::string path) : path_(std::move(path)) {}

  /// Makes the folder for one writer: removes what one left there that was killed, and holds off others as long as the
  /// result lives, also those of other processes (where the file system can: some networks' cannot). For rank 0, before
  /// its first write(). Throws Error where the folder cannot be made or cleared, and where another holds it.
  std::shared_ptr<const void> prepare() const;

  /// As write_checkpoint().
  bool write(std::int64_t step, const Checkpoint& checkpoint, const std::stop_token& stop = {}) const;

  /// Removes a checkpoint that is there. Throws Error where it cannot.
  void remove(std::int64_t step) const;

  /// Removes all but the newest `count` checkpoints and those of the steps `kept`. Throws Error unless `count` >= 1,
  /// and where one cannot be removed.
  void keep(std::int64_t count, const std::vector<std::int64_t>& kept = {}) const;

  /// In rising order; empty where there is no folder.
  std::vector<std::int64_t> steps() const;

  /// The newest one that can be read.
  FoundCheckpoint newest() const;

  /// Of the checkpoint of this step, whether or not it is there.
  std::string path_of(std::int64_t step) const;
  /// Of the folder.
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace tandem::train

// Writing checkpoints beside training.
#pragma once

#include "tandem/train/checkpoint/checkpoint.h"

#include <cstdint>
#include <future>
#include <string>
#include <utility>
#include <vector>

namespace tandem::train {

/// Writes the checkpoints of a run from a thread of its own: training waits for a copy alone, and for the checkpoint
/// before where that is still being written. For rank 0. A checkpoint that cannot be written ends nothing: the ones
/// before stay, and the next is tried again.
/// Example:
///     #include "tandem/train/trainer.h"
///     void save_each(Trainer& trainer, TrainObserver& observer, CheckpointWriter& writer) {
///       observer.epoch = [&](const EpochRecord& epoch) { writer.write(epoch.epoch, {trainer.state_dict(), {}}); };
///     }
class CheckpointWriter {
 public:
  /// Keeps the newest `keep` checkpoints and the best one. Throws Error where the folder cannot be prepared, or
  /// keep < 1.
  CheckpointWriter(CheckpointFolder folder, std::int64_t keep);
  /// Waits for what is being written.
  ~CheckpointWriter();
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  /// Copies the tensors to the CPU and begins to write them. With `best`, this one is kept until a better one comes.
  void write(std::int64_t step, const Checkpoint& checkpoint, bool best = false);

  /// This checkpoint, which is there, is the best so far.
  void set_best(std::int64_t step) { best_ = {step}; }

  /// Waits for what is being written.
  void finish();

  /// What went wrong since the last call, "" if nothing. Of checkpoints that are finished.
  std::string take_problem() { return std::exchange(problem_, {}); }

  const CheckpointFolder& folder() const { return folder_; }

 private:
  CheckpointFolder folder_;
  std::int64_t keep_;
  std::vector<std::int64_t> best_;  // none or one
  std::future<void> writing_;
  std::string problem_;
};

}  // namespace tandem::train

// Writing checkpoints beside training.
#pragma once

#include "tandem/train/checkpoint/checkpoint.h"
#include "tandem/train/checkpoint/state_copy.h"

#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace tandem::train {

/// The profiler's name for writing a checkpoint.
inline constexpr const char* kWritesCheckpoint = "write checkpoint";

/// Writes the checkpoints of a run from a thread of its own, of lower priority: training waits for a copy alone, the
/// memory of which is kept from one to the next. While one is being written, take() copies another state into memory
/// beside it, which begin() then writes. For rank 0. A checkpoint that cannot be written ends nothing: the ones before
/// stay, and the next is tried again. A state whose model or optimizer has NaN, or whose loss is not finite, is not
/// written: nothing good could come of it, and it would take the place of what can still be used. A folder that
/// somebody removed is made again. Example:
///     #include "tandem/train/trainer.h"
///     void save_each(Trainer& trainer, TrainObserver& observer, CheckpointWriter& writer) {
///       observer.epoch = [&](const EpochRecord& epoch) { writer.write(epoch.epoch, {trainer.state_dict(), {}}); };
///     }
class CheckpointWriter {
 public:
  /// Keeps the newest `keep` checkpoints and the best one. The folder is this writer's as long as it is there. Throws
  /// Error where the folder cannot be prepared, as while another run writes there, or keep < 1.
  CheckpointWriter(CheckpointFolder folder, std::int64_t keep);
  /// Waits for what is being written.
  ~CheckpointWriter();
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  /// Asks for the memory of a copy, beside training, so that the first take() need not wait for the system to provide
  /// it; with `twice` also for that of a second one, which is taken while the first is being written. `state` is of the
  /// shapes that will be written.
  void prepare(const NamedTensors& state, bool twice = false);

  /// Copies the tensors to the CPU, in place of what was taken before and is not begun. Waits for prepare(), and for
  /// what is being written only where there is no memory for two. Throws Error as StateCopy::take().
  void take(const NamedTensors& state);

  /// Begins to write what was taken. Waits for the one before where that is still being written: is_free() says. With
  /// `best`, this one is kept until a better one comes.
  void begin(std::int64_t step, const layers::Metadata& metadata, bool best = false);

  /// Waits for the one before, takes the state and begins to write it.
  void write(std::int64_t step, const Checkpoint& checkpoint, bool best = false);

  /// What is being written may be left unwritten, where that is not too late: for who needs the disk at once. Waits for
  /// nothing; finish() finds nothing wrong with it then.
  void cancel() { stop_.request_stop(); }

  /// Why such a state is not written; "" if it is.
  std::string obstacle_to(std::int64_t step, const NamedTensors& state) const;

  /// Whether nothing is being written or prepared: finish() and begin() wait for nothing then.
  bool is_free() const;

  /// This checkpoint, which is there, is the best so far.
  void set_best(std::int64_t step) { best_ = step; }
  /// The best that is there, of those that are finished.
  std::optional<std::int64_t> best() const { return best_; }

  /// These, which are there, go when the next one is written: they cannot be read, and are of later steps.
  void replace(std::vector<std::int64_t> steps) { replaced_ = std::move(steps); }
  /// Those that are to go.
  const std::vector<std::int64_t>& replaced() const { return replaced_; }

  /// Waits for what is being written.
  void finish();

  /// Makes the folder again, which somebody removed, and holds it. Throws Error where it cannot. Writing does this
  /// itself, which take_removed() then tells.
  void begin_again();

  /// Whether the folder was found removed since the last call, and the checkpoints in it are lost.
  bool take_removed() { return std::exchange(was_removed_, false); }

  /// What went wrong since the last call, "" if nothing. Of checkpoints that are finished.
  std::string take_problem() { return std::exchange(problem_, {}); }

  /// Whether the last one that is finished is there, and nothing went wrong with it.
  bool has_written() const { return has_written_; }

  /// Where it writes.
  const CheckpointFolder& folder() const { return folder_; }

 private:
  void hold();
  bool is_held() const;
  bool put(std::int64_t step, const Checkpoint& checkpoint, const std::stop_token& stop);
  void tidy(std::int64_t step);
  void finish_preparing();

  CheckpointFolder folder_;
  std::int64_t keep_;
  std::shared_ptr<const void> lock_;
  std::pair<std::uint64_t, std::uint64_t> held_;  // device and inode of the folder
  bool was_removed_ = false;
  std::optional<std::int64_t> best_, maybe_best_;  // the latter: if what is being written can be
  std::vector<std::int64_t> replaced_;
  StateCopy copy_, taken_;  // what is being written; what will be next
  std::future<void> preparing_, writing_;
  std::stop_source stop_;                        // of what is being written
  bool has_written_ = false, is_there_ = false;  // the latter: also where an older one could not be removed then
  std::string problem_;
};

}  // namespace tandem::train

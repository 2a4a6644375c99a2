// Checkpointing: a run that writes checkpoints as it goes, and goes on from them.
// Example:
//     EpochRecord train_or_go_on(Trainer& trainer, comm::ProcessGroup& group, const TrainObserver& observer) {
//       Checkpointing checkpoints(trainer, group, CheckpointFolder("runs/1/checkpoints"), {.every = {.steps = 500}});
//       checkpoints.resume(CheckpointFolder("runs/1/checkpoints").path());  // if there are any
//       const EpochRecord last = trainer.run(checkpoints.with(observer));
//       const std::string problem = checkpoints.finish();
//       require(problem.empty(), "{}", problem);
//       return last;
//     }
#pragma once

#include "tandem/layers/safetensors.h"
#include "tandem/train/best_by.h"
#include "tandem/train/checkpoint/checkpoint_writer.h"
#include "tandem/train/trainer.h"

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace tandem::train {

/// When to write one; the end of each epoch and one of the others may be given. No step waits for a checkpoint that is
/// still being written, or for the memory of the first: one that is due by steps or by time is put off until behind the
/// first step at which that is done, and not written where none comes. One of an epoch's end is copied at once, into
/// memory beside that of the other, and written when that is done; only where the end of the next epoch comes before
/// that, that one waits.
struct CheckpointInterval {
  std::int64_t steps = 0;  ///< every so many steps, over all epochs; 0: not by steps
  double seconds = 0.0;    ///< after so many seconds of rank 0, at the end of a step; 0: not by time
  bool epochs = true;      ///< at the end of each epoch

  friend bool operator==(const CheckpointInterval&, const CheckpointInterval&) = default;
};

/// "epoch", "500" (steps) or "600s" (seconds), the latter two at the ends of epochs as well. Throws Error for another
/// text.
CheckpointInterval parse_checkpoint_interval(std::string_view text);
/// What parse_checkpoint_interval() reads.
std::string to_string(const CheckpointInterval& interval);

/// When checkpoints are written, and how many are kept.
struct CheckpointingOptions {
  CheckpointInterval every = {};                   ///< how often
  std::int64_t keep = 3;                           ///< the newest so many, and the best
  BestBy best_by = BestBy::test_loss;              ///< among those at the ends of epochs
  layers::Metadata metadata = {};                  ///< into each checkpoint
  std::string after_problem = "training goes on";  ///< what becomes of the run then, told by on_problem
  /// Told, on rank 0, what could not be written: once, and again for another reason, or when writing works again. Also
  /// told that the folder was removed under way, and is made again.
  std::function<void(const std::string&)> on_problem = {};
  /// Called on rank 0 before a state is copied: a log, say, writes the steps before it, so that a run that is killed
  /// and goes on from there has them all.
  std::function<void()> before_copy = {};
  /// Given what a checkpoint's program said of it (metadata), before anything of it is loaded; throws to refuse it.
  std::function<void(const layers::Metadata&)> accept = {};
};

/// What resume() did.
struct Resumed {
  std::string path;                      ///< of the checkpoint; empty: there was none
  std::vector<std::string> passed_over;  ///< what is wrong with newer ones
  std::int64_t epochs = 0, steps = 0;    ///< that the run has done
};

/// Rank 0 writes; all ranks make one of the same folder and options. With a folder without a path nothing is written.
/// The trainer must outlive it.
class Checkpointing {
 public:
  /// Throws AgreedError where rank 0 cannot prepare the folder, and for options out of range. Collective.
  Checkpointing(Trainer& trainer, comm::ProcessGroup& group, CheckpointFolder folder,
                const CheckpointingOptions& options = {});
  /// Waits as wait(); what goes wrong then is not told.
  ~Checkpointing();
  Checkpointing(const Checkpointing&) = delete;
  Checkpointing& operator=(const Checkpointing&) = delete;

  /// Goes on from `path`: a checkpoint, a file of one, or a folder of checkpoints (or one that has them in
  /// "checkpoints"), of which it takes the newest that can be read. All ranks must see the same. Throws AgreedError
  /// where nothing at `path` is a checkpoint, or none of those there can be read, or as Trainer::load_state_dict(). A
  /// folder without any is no error, and nothing is loaded. Those of later steps in this object's own folder, which
  /// were passed over, go when the next one is written; where others of later steps are there, throws as with().
  /// Collective.
  Resumed resume(const std::string& path);

  /// `observer`, and what writes checkpoints. Must not outlive this object. Throws AgreedError where the folder holds
  /// checkpoints of later steps than the trainer's: those of another run, or of one that went on elsewhere. Collective.
  TrainObserver with(const TrainObserver& observer);

  /// Waits for what is being written, copies the state of the step that the trainer is behind, and begins to write it:
  /// wait() waits for that. Throws Error where the folder has no path. Collective.
  void write();

  /// The same at a stop that may leave little time, and before all others: what is being written and what was copied
  /// are given up, but for one that is the best of all. That is waited for where it is being written, and written
  /// behind this one where it was copied. Nothing is given up for a state that is not to be written (NaN). As write(),
  /// it only begins to write the state. Collective.
  void write_last();

  /// Makes the folder again, where somebody removed it and the caller has told so. Not collective: does nothing on
  /// other ranks than 0. Throws Error where it cannot; the next checkpoint tries again.
  void begin_again();

  /// Why the last one that is finished could not be written; "" if it was, and on ranks other than 0. Looked at behind
  /// each step.
  const std::string& problem() const { return problem_; }

  /// Waits for what is being written, and for what was copied meanwhile.
  void wait();

  /// The same; returns what went wrong with the last one, "" if nothing.
  std::string finish();

 private:
  using Clock = std::chrono::steady_clock;

  struct Candidate {
    double merit = 0.0;  // larger is better; NaN: cannot be the best
    std::int64_t step = 0;
  };
  /// A copy of the state.
  struct Taken {
    Candidate candidate;
    double epoch_seconds;  // what the epoch in work had taken
  };

  bool is_in_own_folder(const std::string& path) const;
  void check_folder();
  void take_best(const layers::Metadata& metadata, const std::string& path);
  static bool is_better(const Candidate& candidate, const std::optional<Candidate>& best);
  bool is_due(const Progress& progress);
  void take(double merit);
  std::optional<Taken> cancel_others();
  void begin_taken(const std::optional<Candidate>& coming_best = {});
  void begin_if_free();
  void finish_written();
  void tell_removed();
  void tell_problem();
  void prepare();

  Trainer& trainer_;
  comm::ProcessGroup& group_;
  CheckpointingOptions options_;
  bool writes_, is_prepared_ = false;
  bool is_due_ = false;                       // by steps, on all ranks
  std::unique_ptr<CheckpointWriter> writer_;  // of rank 0
  Clock::time_point last_ = Clock::now();
  std::optional<Candidate> best_, maybe_best_;  // the latter: if its checkpoint, which is being written, can be
  std::optional<Taken> taken_;                  // its state is copied, and not begun to be written
  std::string problem_;
  std::string reported_;  // why none could be written
};

}  // namespace tandem::train

// RunEvents: a training run as TensorBoard shows it.
#pragma once

#include "tandem/layers/module.h"
#include "tandem/train/records.h"
#include "tandem/train/writers/tensorboard/tensorboard_writer.h"

#include <string>
#include <string_view>

namespace tandem::train {

/// The records of a run as scalars, on one axis of optimizer steps: loss/step, loss/train, loss/test, accuracy/train
/// (in percent) and so on, the time of each phase, memory by kind, the norms of layers; its settings as hparams and as
/// text. Example:
///     #include "tandem/train/trainer.h"
///     EpochRecord train_with_events(Trainer& trainer, const RunRecord& run, const std::string& folder) {
///       RunEvents events(folder, run, {.first_step = trainer.steps_done() + 1});
///       const EpochRecord last = trainer.run({
///           .step = [&](const StepRecord& step) { events.write(step); },
///           .epoch = [&](const EpochRecord& epoch) { events.write(epoch, trainer.steps_done()); },
///       });
///       events.write_result(last, trainer.steps_done());
///       events.finish(true);
///       return last;
///     }
class RunEvents {
 public:
  /// Throws Error as TensorBoardWriter does.
  RunEvents(const std::string& folder, const RunRecord& run, const TensorBoardOptions& options = {});

  /// Writes a point of each of the step's figures.
  void write(const StepRecord& step);
  /// `step`: how many optimizer steps the run has done at the epoch's end.
  void write(const EpochRecord& epoch, std::int64_t step);
  /// What Trainer::run() returned: the test figures of a run that is tested once, at its end, which the record of the
  /// epoch did not have.
  void write_result(const EpochRecord& last, std::int64_t step);

  /// Histograms of each parameter and of its gradient, which is that of the last step, as weights/NAME and
  /// gradients/NAME.
  void write_histograms(const layers::Module& model, std::int64_t step);

  /// Of an evaluation.json the accuracy of each class, as accuracy_of_class/NAME, the calibration error, and the images
  /// that were taken for something else with the largest loss, as PNG. Of a file that is not there, or has none of
  /// that, nothing. Throws Error for one that is damaged.
  void write_evaluation(const std::string& evaluation_file, std::int64_t step);

  /// The run has come to its end; do not call this for one that will go on.
  void finish(bool success);

  /// For events of the program's own.
  TensorBoardWriter& writer() { return writer_; }

 private:
  void write_test(const EpochRecord& epoch, std::int64_t step);
  void write_costs(const EpochRecord& epoch, std::int64_t step);

  struct LastEpoch {
    std::int64_t step = 0;
    bool is_tested = false;
  };

  TensorBoardWriter writer_;
  LastEpoch last_epoch_;
};

}  // namespace tandem::train

// Reporter: console, progress line and log of a run, on rank 0; silent on the other ranks.
// Example:
//     #include "tandem/train/process_info.h"
//     void train_and_report(Trainer& trainer, const RunRecord& run, const std::function<double()>& elapsed) {
//       Reporter reporter({.epochs = 3, .files = {"run.jsonl", ""}, .elapsed = elapsed});
//       reporter.open_log(run);
//       reporter.header(run);
//       const EpochRecord last = trainer.run(reporter.observer());
//       reporter.finish(last, peak_tensor_memory(Device{}), "");
//     }
#pragma once

#include "tandem/train/console.h"
#include "tandem/train/jsonl_log.h"
#include "tandem/train/progress_line.h"
#include "tandem/train/trainer.h"

#include <functional>
#include <memory>
#include <string>

namespace tandem::train {

struct ReporterOptions {
  bool silent = false;  ///< on all ranks but one
  ProgressMode progress = ProgressMode::automatic;
  std::int64_t epochs = 1;
  ResultFiles files;                               ///< log: written from open_log() on, unless empty
  std::function<double()> elapsed;                 ///< seconds since the program began
  std::string after_problem = "training goes on";  ///< what becomes of the run where the log cannot be written
};

class Reporter {
 public:
  explicit Reporter(ReporterOptions options);

  /// Opens the log and writes its first record: throws Error where that fails, before any work is lost.
  void open_log(const RunRecord& run);

  /// Prints what is about to be trained.
  void header(const RunRecord& run);

  /// What the trainer should call. Must not outlive the reporter.
  TrainObserver observer();

  /// Writes the last record and prints the summary, which names the file of the weights unless it is empty, and
  /// `others` as ResultFiles has them.
  void finish(const EpochRecord& last, TensorMemory peak_tensor_bytes, const std::string& weights,
              const std::vector<std::pair<std::string, std::string>>& others = {});

  /// "" if every record is in the log, or none was wanted; else how many are missing, and why. A log that cannot be
  /// written any more, on a full disk, does not end training: the first time, that is told on stderr.
  std::string log_problem() const;

 private:
  template <typename Record>
  void log(const Record& record);
  void say(const std::string& text, std::FILE* stream = stdout);

  ReporterOptions options_;
  ProgressLine line_;
  std::unique_ptr<JsonlLog> log_;
  std::int64_t missing_records_ = 0;
  std::string reason_;  // of the first one
};

}  // namespace tandem::train

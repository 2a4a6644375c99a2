// Reporter: console, progress line and log of a run, on rank 0; silent on the other ranks.
#pragma once

#include "train/console.h"
#include "train/jsonl_log.h"
#include "train/progress_line.h"
#include "train/trainer.h"

#include <functional>
#include <memory>
#include <string>

namespace tandem::train {

struct ReporterOptions {
  bool silent = false;  ///< on all ranks but one
  ProgressMode progress = ProgressMode::automatic;
  std::int64_t epochs = 1;
  Leftovers files;                  ///< log: written from begin() on, unless empty
  std::function<double()> elapsed;  ///< seconds since the program began
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

  /// Writes the last record and prints the summary; names the file of the weights only where they were `saved`.
  void finish(const EpochRecord& last, TensorMemory peak_tensor_bytes, bool saved = true);

 private:
  void say(const std::string& text);

  ReporterOptions options_;
  ProgressLine line_;
  std::unique_ptr<JsonlLog> log_;
};

}  // namespace tandem::train

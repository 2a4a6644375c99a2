// Reporter: console, progress line and logs of a run, on rank 0; silent on the other ranks.
// Example:
//     #include "tandem/train/process_info.h"
//     void train_and_report(Trainer& trainer, const RunRecord& run, const std::function<double()>& elapsed) {
//       Reporter reporter({.epochs = 3, .logs = {"run.jsonl"}, .elapsed = elapsed});
//       reporter.open_logs(run);
//       reporter.header(run);
//       const EpochRecord last = trainer.run(reporter.observer());
//       reporter.finish(last, peak_tensor_memory(Device{}));
//       reporter.tell_result({.lines = {{"log", reporter.logs()}}});
//     }
#pragma once

#include "tandem/train/console.h"
#include "tandem/train/jsonl_log.h"
#include "tandem/train/progress_line.h"
#include "tandem/train/trainer.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tandem::train {

/// What is shown.
struct ReporterOptions {
  bool silent = false;                              ///< on all ranks but one
  ProgressMode progress = ProgressMode::automatic;  ///< whether there is a bar, and of which kind
  std::int64_t epochs = 1;                          ///< that the run is to have
  std::vector<std::string> logs;                    ///< files, each with all records, written from open_logs() on
  std::function<double()> elapsed;                  ///< seconds since the program began; must be given, on all ranks
  std::string after_problem = "training goes on";   ///< what becomes of the run where a log cannot be written
};

/// Shows a run on the terminal: a head, a line that moves within an epoch, a line for each epoch, and an end.
class Reporter {
 public:
  /// Opens no log: open_logs() does.
  explicit Reporter(ReporterOptions options);

  /// Opens the logs and writes their first record: throws Error where that fails, before any work is lost. What cannot
  /// be opened leaves no record in any of them.
  void open_logs(const RunRecord& run);

  /// Goes on in a new log where one was removed with its folder, which the caller has told. What cannot be written is
  /// told as of any record.
  void begin_logs_again();

  /// Writes what the logs hold back (JsonlLog), as of steps that a checkpoint is behind.
  void flush_logs();

  /// Prints what is about to be trained.
  void header(const RunRecord& run);

  /// What the trainer should call. Must not outlive the reporter.
  TrainObserver observer();

  /// Writes the last record.
  void finish(const EpochRecord& last, TensorMemory peak_tensor_bytes, std::optional<Scaling> scaling = {});

  /// Prints lines of the program's own, where a bar may be on the screen.
  void tell(const std::string& lines) { say(lines); }

  /// What comes next begins on a line of its own: behind Ctrl-C, which terminals show as ^C.
  void begin_fresh_line();

  /// Prints the summary of what finish() was given, and where its files are.
  void tell_result(const ResultFiles& files);

  /// "" if every record is in every log; else how many are missing in which, and why. A log that cannot be written any
  /// more, on a full disk, does not end training: the first time, that is told on stderr. So is a log that somebody
  /// removed: it begins again, and nothing that came later is missing.
  std::string log_problem() const;

  /// The paths of the logs, for ResultFiles: "run.jsonl", "run.jsonl (incomplete)".
  std::vector<std::string> logs() const;

 private:
  struct Log {
    explicit Log(const std::string& path) : file(path) {}
    JsonlLog file;
    std::string reason;  // of the first record that is missing
  };

  void try_logs(const std::function<void(JsonlLog&)>& write);
  template <typename Record>
  void log(const Record& record);
  void say(const std::string& text, std::FILE* stream = stdout);

  ReporterOptions options_;
  ProgressLine line_;
  std::vector<std::unique_ptr<Log>> logs_;
  ResultRecord result_;
};

}  // namespace tandem::train

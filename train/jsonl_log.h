// The machine-readable log of a run: one JSON object per line, the kind in the field "record".
#pragma once

#include "tandem/train/records.h"

#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace tandem::train {

/// Each record is written at once, so that a reader can follow and a crash loses nothing; but steps of less than 50 ms
/// wait for each other so long, or for another record, flush() or the destructor. Numbers that JSON cannot hold (NaN,
/// infinities) are written as null. Errors name the file and the system's reason.
/// Example:
///     JsonlLog log("run.jsonl");
///     StepRecord record;
///     record.step = 1;
///     record.loss = 2.3;
///     log.write(record);
class JsonlLog {
 public:
  /// Makes the file, or goes on after what it holds: the log of another run. Throws Error if the file cannot be
  /// written, or holds something else.
  explicit JsonlLog(const std::string& path);
  ~JsonlLog();
  JsonlLog(const JsonlLog&) = delete;
  JsonlLog& operator=(const JsonlLog&) = delete;

  /// Throws Error where the record, and the steps that wait, cannot be written, as on a full disk. Whole records
  /// that came into the file stay there, and nothing else does, so that later ones can follow.
  void write(const RunRecord& record);
  void write(const StepRecord& record);
  void write(const EpochRecord& record);
  void write(const ResultRecord& record);
  /// Writes the steps that wait. Throws Error as write() does.
  void flush();

  /// How many records could not be written.
  std::int64_t lost_records() const { return lost_records_; }

  /// Where the file was removed: goes on in a new one of the same path, whose folder is made if need be, and which
  /// begins with the last RunRecord. Throws Error where that fails; the next write() tries again. A write() does this
  /// itself, which take_removed() then tells.
  void begin_again();

  /// Whether a write() since the last call found the file removed, and what was in it is lost.
  bool take_removed() { return std::exchange(was_removed_, false); }

  /// Of the file.
  const std::string& path() const { return path_; }

 private:
  void write_line(const std::string& line);
  void append(const std::string& lines);
  bool is_removed() const;

  std::string path_;
  std::string run_line_;  // of the last RunRecord
  bool was_removed_ = false;
  std::vector<StepRecord> waiting_;
  std::chrono::steady_clock::time_point last_write_;
  std::int64_t lost_records_ = 0;
  int descriptor_ = -1;
  bool starts_inside_line_ = false;  // whoever wrote before was killed
};

}  // namespace tandem::train

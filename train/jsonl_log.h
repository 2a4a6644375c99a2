// The machine-readable log of a run: one JSON object per line, the kind in the field "record".
#pragma once

#include "tandem/train/records.h"

#include <string>

namespace tandem::train {

/// Each line is written at once, so that a reader can follow and a crash loses nothing. Numbers that JSON cannot hold
/// (NaN, infinities) are written as null. Errors name the file and the system's reason.
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

  /// Throws Error where the record cannot be written, as on a full disk. Nothing of it is in the file then, so that
  /// later records can follow.
  void write(const RunRecord& record);
  void write(const StepRecord& record);
  void write(const EpochRecord& record);
  void write(const ResultRecord& record);

  const std::string& path() const { return path_; }

 private:
  void write_line(const std::string& line);

  std::string path_;
  int descriptor_ = -1;
  bool starts_inside_line_ = false;  // whoever wrote before was killed
};

}  // namespace tandem::train

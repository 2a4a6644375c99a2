// The machine-readable log of a run: one JSON object per line, the kind in the field "record".
#pragma once

#include "train/records.h"

#include <cstdio>
#include <memory>
#include <string>

namespace tandem::train {

/// Lines are flushed one by one, so that a reader can follow and a crash loses nothing. Numbers that JSON cannot hold
/// (NaN, infinities) are written as null. Errors name the file and the system's reason.
class JsonlLog {
 public:
  /// Starts the file anew; throws Error if it cannot be written.
  explicit JsonlLog(const std::string& path);

  void write(const RunRecord& record);
  void write(const StepRecord& record);
  void write(const EpochRecord& record);
  void write(const ResultRecord& record);

  const std::string& path() const { return path_; }

 private:
  void write_line(const std::string& line);

  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::string path_;
  std::unique_ptr<std::FILE, Close> file_;
};

}  // namespace tandem::train

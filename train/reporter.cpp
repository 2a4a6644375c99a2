// Who writes what, when.
#include "tandem/train/reporter.h"

#include "tandem/comm/long_work.h"
#include "tandem/core/error.h"
#include "tandem/train/terminal.h"
#include "tandem/train/wrapped_text.h"

#include <fmt/core.h>

#include <cstdio>

namespace tandem::train {

Reporter::Reporter(ReporterOptions options)
    : options_(std::move(options)),
      line_(standard_progress(options_.silent ? ProgressMode::none : options_.progress)) {}

void Reporter::open_logs(const RunRecord& run) {
  if (options_.silent) return;
  for (const std::string& path : options_.logs) logs_.push_back(std::make_unique<Log>(path));
  for (const auto& log : logs_) log->file.write(run);
}

void Reporter::header(const RunRecord& run) { say(header_text(run)); }

TrainObserver Reporter::observer() {
  TrainObserver observer;
  if (options_.silent) return observer;
  observer.first_step = [this] { say(fmt::format("  start    first step after {:.2f} s\n", options_.elapsed())); };
  observer.progress = [this](const Progress& progress) {
    const comm::LongWork slow_reader;
    line_.update(progress);
  };
  observer.epoch = [this](const EpochRecord& epoch) {
    const comm::LongWork slow_reader;
    line_.finish(epoch_text(epoch, options_.epochs));
    log(epoch);
  };
  if (!logs_.empty()) observer.step = [this](const StepRecord& step) { log(step); };
  return observer;
}

void Reporter::finish(const EpochRecord& last, TensorMemory peak_tensor_bytes, std::optional<Scaling> scaling) {
  result_ = {last, options_.elapsed(), std::move(peak_tensor_bytes), std::move(scaling)};
  log(result_);
}

void Reporter::tell_result(const ResultFiles& files) { say(summary_text(result_, files)); }

void Reporter::begin_fresh_line() {
  if (!options_.silent) line_.begin_fresh_line();
}

void Reporter::flush_logs() {
  try_logs([](JsonlLog& log) { log.flush(); });
}

std::string Reporter::log_problem() const {
  std::string text;
  for (const auto& log : logs_) {
    const std::int64_t missing = log->file.lost_records();
    if (missing == 0) continue;
    text += fmt::format("{}{}; {} record{} missing", text.empty() ? "" : "; ", log->reason, missing,
                        missing == 1 ? " is" : "s are");
  }
  return text;
}

std::vector<std::string> Reporter::logs() const {
  std::vector<std::string> paths;
  for (const auto& log : logs_)
    paths.push_back(log->file.path() + (log->file.lost_records() == 0 ? "" : " (incomplete)"));
  return paths;
}

void Reporter::begin_logs_again() {
  try_logs([](JsonlLog& log) { log.begin_again(); });
}

template <typename Record>
void Reporter::log(const Record& record) {
  try_logs([&](JsonlLog& log) { log.write(record); });
}

void Reporter::try_logs(const std::function<void(JsonlLog&)>& write) {
  const comm::LongWork slow_disk;
  for (const auto& log : logs_) {
    try {
      write(log->file);
      if (log->file.take_removed())
        say(fmt::format("warning: log file {}: was removed while the run wrote to it; it begins again, without what "
                        "it held\n",
                        log->file.path()),
            stderr);
    } catch (const Error& error) {
      if (!log->reason.empty()) continue;
      log->reason = error.what();
      say(fmt::format("warning: {}; {}\n", log->reason, options_.after_problem), stderr);
    }
  }
}

void Reporter::say(const std::string& text, std::FILE* stream) {
  if (options_.silent) return;
  const comm::LongWork slow_reader;
  line_.clear();
  std::fputs((stream == stdout ? line_.fitted(text) : wrapped(text, line_columns(stream))).c_str(), stream);
  std::fflush(stream);
}

}  // namespace tandem::train

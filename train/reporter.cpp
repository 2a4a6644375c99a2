// Who writes what, when.
#include "tandem/train/reporter.h"

#include "tandem/core/error.h"

#include <fmt/core.h>

#include <cstdio>

namespace tandem::train {

Reporter::Reporter(ReporterOptions options)
    : options_(std::move(options)),
      line_(standard_progress(options_.silent ? ProgressMode::none : options_.progress)) {}

void Reporter::open_log(const RunRecord& run) {
  if (options_.silent || options_.log.empty()) return;
  log_ = std::make_unique<JsonlLog>(options_.log);
  log_->write(run);
}

void Reporter::header(const RunRecord& run) { say(header_text(run)); }

TrainObserver Reporter::observer() {
  TrainObserver observer;
  if (options_.silent) return observer;
  observer.first_step = [this] { say(fmt::format("  start    first step after {:.2f} s\n", options_.elapsed())); };
  observer.progress = [this](const Progress& progress) { line_.update(progress); };
  observer.epoch = [this](const EpochRecord& epoch) {
    line_.finish(epoch_text(epoch, options_.epochs));
    log(epoch);
  };
  if (log_) observer.step = [this](const StepRecord& step) { log(step); };
  return observer;
}

void Reporter::finish(const EpochRecord& last, TensorMemory peak_tensor_bytes) {
  result_ = {last, options_.elapsed(), std::move(peak_tensor_bytes)};
  log(result_);
}

void Reporter::tell_result(const ResultFiles& files) { say(summary_text(result_, files)); }

std::string Reporter::log_problem() const {
  if (missing_records_ == 0) return "";
  return fmt::format("{}; {} record{} missing", reason_, missing_records_, missing_records_ == 1 ? " is" : "s are");
}

void Reporter::begin_log_again() {
  try_log([](JsonlLog& log) { log.begin_again(); });
}

template <typename Record>
void Reporter::log(const Record& record) {
  try_log([&](JsonlLog& log) { log.write(record); });
}

void Reporter::try_log(const std::function<void(JsonlLog&)>& write) {
  if (!log_) return;
  try {
    write(*log_);
    if (log_->take_removed())
      say(fmt::format("warning: log file {}: was removed while the run wrote to it; it begins again, without what it "
                      "held\n",
                      log_->path()),
          stderr);
  } catch (const Error& error) {
    if (++missing_records_ > 1) return;
    reason_ = error.what();
    say(fmt::format("warning: {}; {}\n", reason_, options_.after_problem), stderr);
  }
}

void Reporter::say(const std::string& text, std::FILE* stream) {
  if (options_.silent) return;
  line_.clear();
  std::fputs(text.c_str(), stream);
  std::fflush(stream);
}

}  // namespace tandem::train

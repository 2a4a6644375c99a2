// Who writes what, when.
#include "train/reporter.h"

#include <fmt/core.h>

#include <cstdio>

namespace tandem::train {

Reporter::Reporter(ReporterOptions options)
    : options_(std::move(options)),
      line_(standard_progress(options_.silent ? ProgressMode::none : options_.progress)) {}

void Reporter::open_log(const RunRecord& run) {
  if (options_.silent || options_.files.log.empty()) return;
  log_ = std::make_unique<JsonlLog>(options_.files.log);
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
    if (log_) log_->write(epoch);
  };
  if (log_) observer.step = [this](const StepRecord& step) { log_->write(step); };
  return observer;
}

void Reporter::finish(const EpochRecord& last, TensorMemory peak_tensor_bytes, bool saved) {
  const ResultRecord result{last, options_.elapsed(), std::move(peak_tensor_bytes)};
  if (log_) log_->write(result);
  if (!saved) options_.files.weights.clear();
  say(summary_text(result, options_.files));
}

void Reporter::say(const std::string& text) {
  if (options_.silent) return;
  line_.clear();
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

}  // namespace tandem::train

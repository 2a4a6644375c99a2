// Looking before anything else is written.
#include "run_directory_watch.h"

#include "tandem/comm/long_work.h"
#include "tandem/core/error.h"
#include "tandem/train/stderr_line.h"

#include <fmt/core.h>

#include <cstdio>

namespace tandem::apps {
namespace {

void warn(const std::string& text) { train::print_to_stderr(fmt::format("warning: {}; training goes on", text)); }

}  // namespace

train::TrainObserver RunDirectoryWatch::with(const train::TrainObserver& observer) {
  if (claimed_.path().empty()) return observer;
  train::TrainObserver result = observer;
  // The observer's functions that are empty stay so: the trainer does no work for those.
  if (observer.step) {
    result.step = [this, inner = observer.step](const train::StepRecord& step) {
      look();
      inner(step);
    };
  }
  result.progress = [this, inner = observer.progress](const train::Progress& progress) {
    look();
    if (inner) inner(progress);
  };
  result.epoch = [this, inner = observer.epoch](const train::EpochRecord& epoch) {
    look();
    if (inner) inner(epoch);
  };
  return result;
}

void RunDirectoryWatch::look() {
  const comm::LongWork slow_disk;
  try {
    if (!claimed_.make_again()) return;
  } catch (const Error& error) {
    if (reported_ != error.what()) warn(reported_ = error.what());
    return;
  }
  reported_.clear();
  warn(fmt::format("--run-dir {}: was removed while the run wrote there; it is made again, without what it held",
                   claimed_.path()));
  for (const auto& write : write_again_) {
    try {
      write();
    } catch (const Error& error) {
      warn(error.what());
    }
  }
}

}  // namespace tandem::apps

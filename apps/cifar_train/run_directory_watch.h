// A run directory that somebody removes while the run writes to it.
#pragma once

#include "claimed_directory.h"

#include "tandem/train/trainer.h"

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace tandem::apps {

/// Looks at each step whether the run directory is still there. Where it is not, makes it again, says so once on
/// stderr, and writes again what the run cannot do without. For rank 0; does nothing for a directory without a path.
class RunDirectoryWatch {
 public:
  /// `write_again`: what is to be done in the new directory. Each is tried; what one throws is told. `claimed` must
  /// outlive the watch.
  RunDirectoryWatch(ClaimedDirectory& claimed, std::vector<std::function<void()>> write_again)
      : claimed_(claimed), write_again_(std::move(write_again)) {}

  /// `observer`, behind a look at the directory. Must not outlive this object.
  train::TrainObserver with(const train::TrainObserver& observer);

  /// Looks now.
  void look();

 private:
  ClaimedDirectory& claimed_;
  std::vector<std::function<void()>> write_again_;
  std::string reported_;  // why it could not be made again
};

}  // namespace tandem::apps

// Exchanges of gradients that a GPU is at, of the last few steps.
#pragma once

#include "tandem/comm/work.h"

#include <deque>
#include <memory>
#include <vector>

namespace tandem::comm {

/// Keeps the works of steps whose exchange was joined (Work::join()) until they are complete, so that the host learns
/// where one has failed, and is some steps ahead of the GPU at most.
class StepsUnderWay {
 public:
  StepsUnderWay() = default;
  StepsUnderWay(const StepsUnderWay&) = delete;
  StepsUnderWay& operator=(const StepsUnderWay&) = delete;
  /// Waits for all, but where an error is on its way; theirs are not told any more.
  ~StepsUnderWay();

  /// Of the next step; none where its exchange is complete. Waits for those of the third step before it, and of earlier
  /// ones; where there are none for all. Throws Error where one of these has failed.
  void add(std::vector<std::unique_ptr<Work>> works);

  /// The last step's works as one; null where they were complete.
  std::shared_ptr<Work> last() const { return steps_.empty() ? nullptr : steps_.back(); }

 private:
  std::deque<std::shared_ptr<Work>> steps_;  // the oldest first
};

}  // namespace tandem::comm

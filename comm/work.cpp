// Waiting for a limited time, and work that is done.
#include "tandem/comm/work.h"

namespace tandem::comm {

namespace {

class DoneWork final : public Work {
 public:
  bool poll() override { return true; }
  void wait() override {}
};

}  // namespace

bool Work::wait_for(std::chrono::nanoseconds time) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  Patience patience;
  while (!poll()) {
    if (Clock::now() - begin >= time) return false;
    patience.pause();
  }
  return true;
}

std::unique_ptr<Work> done_work() { return std::make_unique<DoneWork>(); }

}  // namespace tandem::comm

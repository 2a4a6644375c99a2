// A chain of counters for each thread, and a bit that says that there is one.
#include "tandem/core/work_counter.h"

#include "tandem/core/profiler.h"

#include <mutex>

namespace tandem {
namespace {

thread_local WorkCounter* innermost = nullptr;

/// Of all threads.
void change_number_of_counters(int by) {
  static std::mutex mutex;
  static int number = 0;
  const std::lock_guard lock(mutex);
  number += by;
  if (number > 0) {
    detail::range_listeners |= detail::kWorkCounters;
  } else {
    detail::range_listeners &= ~detail::kWorkCounters;
  }
}

}  // namespace

WorkCounter::WorkCounter() : outer_(innermost) {
  change_number_of_counters(1);
  innermost = this;
}

WorkCounter::~WorkCounter() {
  innermost = outer_;
  change_number_of_counters(-1);
}

void count_work(double flops) {
  for (WorkCounter* counter = innermost; counter != nullptr; counter = counter->outer_) counter->flops_ += flops;
}

}  // namespace tandem

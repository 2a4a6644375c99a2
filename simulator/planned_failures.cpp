// Which call it is that fails.
#include "tandem/simulator/planned_failures.h"

#include "tandem/simulator/settings.h"

namespace tandem::simulator {

namespace {

class Plan {
 public:
  void set(std::int64_t nth, std::int64_t times) {
    calls_until_failure_ = nth;
    failures_ = times;
  }

  bool fails() {
    if (calls_until_failure_ <= 0 || failures_ <= 0 || --calls_until_failure_ > 0) return false;
    if (--failures_ > 0) calls_until_failure_ = 1;
    return true;
  }

 private:
  std::int64_t calls_until_failure_ = 0, failures_ = 0;
};

thread_local Plan allocations, host_allocations, instantiations;

}  // namespace

void fail_allocation(std::int64_t nth, std::int64_t times) { allocations.set(nth, times); }
void fail_host_allocation(std::int64_t nth, std::int64_t times) { host_allocations.set(nth, times); }
void fail_instantiation(std::int64_t nth, std::int64_t times) { instantiations.set(nth, times); }

bool allocation_fails() { return allocations.fails(); }
bool host_allocation_fails() { return host_allocations.fails(); }
bool instantiation_fails() { return instantiations.fails(); }

}  // namespace tandem::simulator

// Steps, and the operation that they belong to.
#include "tandem/comm/backends/native/operation_trace.h"

#include <utility>

namespace tandem::comm {

OperationTrace::OperationTrace(const Collective& collective, std::string_view algorithm, int rank)
    : event_{.name = describe(collective),
             .algorithm = std::string(algorithm),
             .rank = rank,
             .bytes = collective.bytes(collective.total())},
      now_ns_(detail::timeline_ns()),
      last_ns_(now_ns_) {
  constexpr std::size_t kUsualSteps = 16;
  event_.steps.reserve(kUsualSteps);
  event_.begin_ns = now_ns_;
}

void OperationTrace::add_wait(std::string_view action) {
  add({.action = action, .begin_ns = last_ns_, .wait_ns = now_ns_ - last_ns_});
  last_ns_ = now_ns_;
}

void OperationTrace::add_work(std::string_view action, StepWork work, std::int64_t bytes, std::int64_t segment) {
  CommunicationStep step{.action = action,
                         .segment = static_cast<int>(segment),
                         .bytes = bytes,
                         .begin_ns = last_ns_,
                         .wait_ns = now_ns_ - last_ns_};
  last_ns_ = detail::timeline_ns();
  (work == StepWork::copy ? step.copy_ns : step.reduce_ns) = last_ns_ - now_ns_;
  now_ns_ = last_ns_;
  add(step);
}

void OperationTrace::finish(std::int64_t number) {
  event_.number = number;
  event_.duration_ns = now_ns_ - event_.begin_ns;
  detail::add_to_timeline(recording_, std::move(event_));
}

}  // namespace tandem::comm

// The steps of an operation between ranks, for the timeline that is recorded.
#pragma once

#include "tandem/comm/collective.h"
#include "tandem/core/timeline.h"

#include <cstdint>
#include <memory>
#include <string_view>

namespace tandem::comm {

/// What a step is busy with.
enum class StepWork : std::uint8_t { copy, reduce };

class OperationTrace {
 public:
  /// Of an operation that begins now, on rank `rank`; null while no timeline is recorded.
  static std::unique_ptr<OperationTrace> begin(const Collective& collective, std::string_view algorithm, int rank) {
    return timeline_is_recorded() ? std::make_unique<OperationTrace>(collective, algorithm, rank) : nullptr;
  }
  OperationTrace(const Collective& collective, std::string_view algorithm, int rank);

  void add(const CommunicationStep& step) { event_.steps.push_back(step); }
  /// A step that has been waiting since the last one ended.
  void add_wait(std::string_view action);
  /// Copied or combined since `now_ns()`, and waited since the last step ended until then.
  void add_work(std::string_view action, StepWork work, std::int64_t bytes, std::int64_t segment);

  /// For who is about to see whether anything can be done.
  void look_at_clock() { now_ns_ = detail::timeline_ns(); }
  /// Since then nothing has taken long: a clock costs as much as a small step.
  std::int64_t now_ns() const { return now_ns_; }

  /// The operation is complete. `number`: the same for what it has met on other ranks.
  void finish(std::int64_t number);

 private:
  std::shared_ptr<detail::Recording> recording_ = detail::recording_of_thread();  // others may finish it
  CommunicationEvent event_;
  std::int64_t now_ns_, last_ns_;  // the latter: the end of the last step that waited for all, or worked
};

/// Its scope is a step: OperationTrace::add_work(). Costs a test with a null trace.
class StepScope {
 public:
  StepScope(const std::unique_ptr<OperationTrace>& trace, std::string_view action, StepWork work, std::int64_t bytes,
            std::int64_t segment = -1)
      : trace_(trace.get()), action_(action), work_(work), bytes_(bytes), segment_(segment) {}
  ~StepScope() {
    if (trace_ != nullptr) [[unlikely]]
      trace_->add_work(action_, work_, bytes_, segment_);
  }
  void add_bytes(std::int64_t bytes) { bytes_ += bytes; }
  StepScope(const StepScope&) = delete;
  StepScope& operator=(const StepScope&) = delete;

 private:
  OperationTrace* trace_;
  std::string_view action_;
  StepWork work_;
  std::int64_t bytes_, segment_;
};

}  // namespace tandem::comm

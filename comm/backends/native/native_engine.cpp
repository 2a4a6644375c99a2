// Starting, moving on and ending.
#include "tandem/comm/backends/native/native_engine.h"

#include <algorithm>
#include <utility>

namespace tandem::comm {

namespace {

/// Whether `later`, which was started later, must not begin before `earlier` has ended: messages of one tag travel in
/// segments, which would mix.
bool is_ahead_of(const Collective& earlier, const Collective& later) {
  return earlier.kind == later.kind && earlier.peer == later.peer && earlier.tag == later.tag;
}

}  // namespace

NativeEngine::NativeEngine(std::unique_ptr<Transport> transport, int ranks, int rank, Schedule all_reduce,
                           SegmentOptions options)
    : transport_(std::move(transport)),
      rank_(rank),
      options_(options),
      schedules_(ranks, rank, {{0, std::make_shared<const Schedule>(std::move(all_reduce))}}) {}

int NativeEngine::tag_of(const Collective& collective) {
  return is_message(collective.kind) ? kCollectiveTags + collective.tag : take_tag();
}

std::shared_ptr<NativeOperation> NativeEngine::start(const Collective& collective) {
  CollectivePlan plan = schedules_.plan(collective);
  auto trace = OperationTrace::begin(collective, plan.schedule->name, rank_);
  const int tag = tag_of(collective);
  ScheduleRun run(*transport_, plan.schedule, rank_, tag, plan.chunks, plan.elements, options_);
  run.trace(std::move(trace), tag);
  auto operation = std::make_shared<NativeOperation>(NativeOperation{collective, std::move(plan), std::move(run)});
  active_.push_back(operation);
  poll();
  return operation;
}

bool NativeEngine::poll() {
  bool moved = false;
  std::size_t kept = 0;  // those that have not ended, in front
  for (std::shared_ptr<NativeOperation>& entry : active_) {
    NativeOperation& operation = *entry;
    const std::size_t before = operation.run.messages();
    const bool ended = has_turn(operation, kept) && move_on(operation);
    moved = moved || ended || operation.run.messages() != before;
    if (!ended) std::swap(active_[kept++], entry);
  }
  active_.resize(kept);
  return moved;
}

/// Whether none of the first `earlier` operations must end before.
bool NativeEngine::has_turn(const NativeOperation& operation, std::size_t earlier) const {
  if (!is_message(operation.collective.kind)) return true;
  return std::none_of(active_.begin(), active_.begin() + static_cast<std::ptrdiff_t>(earlier),
                      [&](const auto& other) { return is_ahead_of(other->collective, operation.collective); });
}

/// Whether it has ended, be it by a fault.
bool NativeEngine::move_on(NativeOperation& operation) {
  try {
    if (!operation.run.poll()) return false;
    if (operation.collective.kind == CollectiveKind::all_reduce) all_reduce_bytes_sent_ += operation.run.bytes_sent();
  } catch (...) {
    operation.fault = std::current_exception();
  }
  return true;
}

bool NativeEngine::is_complete(const NativeOperation& operation) const {
  if (operation.fault) std::rethrow_exception(operation.fault);
  return std::none_of(active_.begin(), active_.end(), [&](const auto& active) { return active.get() == &operation; });
}

void NativeEngine::cancel(const NativeOperation& operation) {
  std::erase_if(active_, [&](const auto& active) { return active.get() == &operation; });
}

}  // namespace tandem::comm

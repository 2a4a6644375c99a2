// Starting, moving on and ending.
#include "tandem/comm/backends/native/native_engine.h"

#include <algorithm>
#include <utility>

namespace tandem::comm {

NativeEngine::NativeEngine(std::unique_ptr<Transport> transport, int ranks, int rank, Schedule all_reduce,
                           SegmentOptions options)
    : transport_(std::move(transport)),
      rank_(rank),
      options_(options),
      schedules_(ranks, rank, {{0, std::make_shared<const Schedule>(std::move(all_reduce))}}) {}

int NativeEngine::tag_of(const Collective& collective) {
  if (collective.kind == CollectiveKind::send || collective.kind == CollectiveKind::receive)
    return kCollectiveTags + collective.tag;
  return take_tag();
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
  std::erase_if(active_, [&](const std::shared_ptr<NativeOperation>& operation) {
    const std::size_t before = operation->run.messages();
    const bool ended = move_on(*operation);
    moved = moved || ended || operation->run.messages() != before;
    return ended;
  });
  return moved;
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

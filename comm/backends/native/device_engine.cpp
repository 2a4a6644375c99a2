// Stages of operations, the order between the ranks' streams, and failures.
#include "tandem/comm/backends/native/device_engine.h"

#include "tandem/comm/backends/keep_for_ever.h"
#include "tandem/comm/doctor/fixed_text.h"
#include "tandem/core/error.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

namespace tandem::comm {

namespace {

/// Of a rank that waits for another one: that one's reason, or that it has ended.
class PeerFailure : public Error {
 public:
  PeerFailure(const Collective& collective, std::string reason)
      : Error(fmt::format("{}: {}", describe(collective), reason)), reason_(std::move(reason)) {}
  const std::string& reason() const { return reason_; }

 private:
  std::string reason_;
};

}  // namespace

std::int64_t DeviceEngine::area_bytes() {
  constexpr std::int64_t kUnit = kSharedLineBytes;
  return (static_cast<std::int64_t>(sizeof(DeviceRankArea)) + kUnit - 1) / kUnit * kUnit;
}

DeviceEngine::DeviceEngine(std::unique_ptr<DeviceWindow> window, std::shared_ptr<SharedMemory> memory, int rank,
                           int ranks, const PeerProcesses& peers, const DeviceSegments& segments)
    : window_(std::move(window)),
      memory_(std::move(memory)),
      rank_(rank),
      ranks_(ranks),
      ended_(peers, rank, ranks),
      segments_(segments) {
  look_after_parked_windows();
}

/// Others may still read this rank's memory, and nobody waits for them here.
DeviceEngine::~DeviceEngine() {
  const bool is_here = process_ == getpid();  // one that was made by fork() has no part in the group
  if (is_here) poll();                        // works that were dropped may be done by now
  if (is_here && !queue_.empty()) tell_failure(fmt::format("rank {} has given it up", rank_));
  if (!is_here || failure_ || !queue_.empty()) {
    keep_everything();
  } else {
    park_window();
  }
}

void DeviceEngine::park_window() {
  ParkedWindow parked{.window = std::move(window_), .memory = memory_, .has_closed = &mine().has_closed};
  for (std::shared_ptr<DeviceOperation>& operation : issued_) {
    if (!parked.at_work) parked.at_work = std::make_unique<StreamAtWork>();
    operation->at_work.reset();
    parked.ends.push_back(operation->done);
    parked.kept.push_back(std::move(operation));
  }
  for (int rank = 0; rank < ranks_; ++rank)
    if (rank != rank_) parked.others_have_closed.push_back(&area(rank).has_closed);
  park(std::move(parked));
}

/// A stream may still wait for others, and write then.
void DeviceEngine::keep_everything() {
  for (auto* const operations : {&queue_, &issued_})
    for (std::shared_ptr<DeviceOperation>& operation : *operations) detail::keep_for_ever(std::move(operation));
  detail::keep_for_ever(std::shared_ptr<DeviceWindow>(std::move(window_)));
  detail::keep_for_ever(std::move(memory_));
}

bool DeviceEngine::takes(CollectiveKind kind) {
  return kind == CollectiveKind::all_reduce || kind == CollectiveKind::reduce || kind == CollectiveKind::broadcast ||
         kind == CollectiveKind::all_gather || kind == CollectiveKind::reduce_scatter;
}

CollectiveAgreement DeviceEngine::agreement() const {
  std::vector<AnnouncementArea*> areas;
  for (int rank = 0; rank < ranks_; ++rank) areas.push_back(&area(rank).announcements);
  return {std::move(areas), rank_};
}

DeviceRankArea& DeviceEngine::area(int rank) const {
  return *reinterpret_cast<DeviceRankArea*>(memory_->data() + rank * area_bytes());
}

std::shared_ptr<DeviceOperation> DeviceEngine::start(const Collective& collective, const Event& ready) {
  auto operation = std::make_shared<DeviceOperation>();
  operation->collective = collective;
  operation->ready = ready;
  operation->number = ++number_;
  if (failure_) {
    operation->fault = failure_;
    operation->stage = Stage::complete;
    return operation;
  }
  queue_.push_back(operation);
  poll();
  return operation;
}

bool DeviceEngine::poll() {
  if (queue_.empty() && issued_.empty()) return false;
  bool moved = false;
  try {
    moved = poll_issued();
    while (!queue_.empty() && advance(*queue_.front())) {
      moved = true;
      if (queue_.front()->stage != Stage::issued) continue;
      issued_.push_back(std::move(queue_.front()));
      queue_.pop_front();
    }
  } catch (const PeerFailure& failure) {
    fail_here(std::current_exception(), failure.reason());
    return true;
  } catch (const std::exception& error) {
    fail_here(std::current_exception(), fmt::format("rank {} failed in it: {}", rank_, error.what()));
    return true;
  }
  return moved;
}

bool DeviceEngine::poll_issued() {
  bool moved = false;
  while (!issued_.empty()) {
    DeviceOperation& first = *issued_.front();
    if (!first.done.is_done()) {
      check_failures(first);  // the stream may wait for that rank's
      break;
    }
    first.stage = Stage::complete;
    first.at_work.reset();
    mine().done.set(first.number);
    issued_.pop_front();
    moved = true;
  }
  return moved;
}

/// Whether it moved.
bool DeviceEngine::advance(DeviceOperation& operation) {
  switch (operation.stage) {
    case Stage::queued:
      begin(operation);
      return true;
    case Stage::moving:
      return advance_segments(operation);
    case Stage::issued:
    case Stage::complete:
      break;
  }
  return false;
}

void DeviceEngine::begin(DeviceOperation& operation) {
  check_failures(operation);
  const Collective& c = operation.collective;
  operation.by_parts =
      c.kind == CollectiveKind::all_reduce && ranks_ > 2 && c.bytes(c.count()) >= segments_.parts_from_bytes;
  operation.first = taken_;
  operation.end = operation.first + static_cast<std::uint64_t>(segments_of(c));
  operation.stage = Stage::moving;
  operation.at_work.emplace();
  window_->stream().wait(operation.ready);
}

bool DeviceEngine::has_all(Counter DeviceRankArea::* counter, std::uint64_t segments) const {
  for (int rank = 0; rank < ranks_; ++rank)
    if ((area(rank).*counter).get() < segments) return false;
  return true;
}

/// A mark is recorded for a segment only when all have taken up what it was recorded for in the slot before: a stream
/// waits for what an event is when it is told to wait.
bool DeviceEngine::advance_segments(DeviceOperation& operation) {
  check_failures(operation);
  bool moved = false;
  if (copied_ < operation.end &&
      (copied_ < DeviceWindow::kSlots || has_all(&DeviceRankArea::taken, copied_ + 1 - DeviceWindow::kSlots))) {
    copy_in(operation, copied_);
    mine().copied.set(++copied_);
    moved = true;
  }
  if (operation.by_parts && reduced_ < operation.end && has_all(&DeviceRankArea::copied, reduced_ + 1)) {
    reduce_part(operation, reduced_);
    mine().reduced.set(++reduced_);
    moved = true;
  }
  const auto before = operation.by_parts ? &DeviceRankArea::reduced : &DeviceRankArea::copied;
  if (taken_ < operation.end && has_all(before, taken_ + 1)) {
    take(operation, taken_);
    window_->record(DeviceMark::taken, taken_);
    if (!operation.by_parts) mine().reduced.set(++reduced_);
    mine().taken.set(++taken_);
    moved = true;
  }
  if (taken_ < operation.end) return moved;
  operation.done.record(window_->stream());
  operation.stage = Stage::issued;
  return true;
}

/// A rank whose GPU has done the operation before it failed has left everything behind that others need.
void DeviceEngine::check_failures(const Collective& collective, std::uint64_t number) const {
  for (int rank = 0; rank < ranks_; ++rank)
    if (area(rank).has_failed.load(std::memory_order_acquire) && area(rank).done.get() < number)
      throw PeerFailure(collective, text_in(area(rank).failure));
}

void DeviceEngine::tell_failure(std::string_view reason) {
  if (mine().has_failed.load(std::memory_order_relaxed)) return;
  copy_text(reason, mine().failure);
  mine().has_failed.store(true, std::memory_order_release);
}

/// Streams do not go on as others expect: those learn it, and whose fault it is.
void DeviceEngine::fail_here(std::exception_ptr fault, std::string_view reason) {
  failure_ = std::move(fault);
  tell_failure(reason);
  for (auto* const operations : {&queue_, &issued_}) {
    for (const std::shared_ptr<DeviceOperation>& operation : *operations) {
      operation->fault = failure_;
      operation->stage = Stage::complete;
      detail::keep_for_ever(operation);  // the stream may write there yet
    }
    operations->clear();
  }
}

const DeviceOperation* DeviceEngine::first() const {
  return !issued_.empty() ? issued_.front().get() : !queue_.empty() ? queue_.front().get() : nullptr;
}

/// Of one whose work is all on the streams, any rank's may be what is not done.
bool DeviceEngine::waits_for(const DeviceOperation& operation, int rank) const {
  return operation.stage == Stage::issued ? area(rank).done.get() < operation.number
                                          : area(rank).taken.get() < operation.end;
}

std::string DeviceEngine::waits_for() const {
  const DeviceOperation* const operation = first();
  if (operation == nullptr) return "";
  if (operation->stage == Stage::issued) return "GPU memory, for the GPUs";
  for (int rank = 0; rank < ranks_; ++rank)
    if (rank != rank_ && waits_for(*operation, rank))
      return fmt::format("GPU memory, for rank {} to do its part", rank);
  return "GPU memory";
}

void DeviceEngine::check_peers() {
  const DeviceOperation* const operation = first();
  if (operation == nullptr) return;
  const int ended = ended_.look([&](int rank) { return waits_for(*operation, rank); });
  if (ended < 0) return;
  const std::string reason = ended_.text_of(ended);
  fail_here(std::make_exception_ptr(PeerFailure(operation->collective, reason)), reason);
  std::rethrow_exception(failure_);
}

}  // namespace tandem::comm

// Offers, segments, and the order between the ranks' streams.
#include "tandem/comm/backends/native/device_engine.h"

#include "tandem/comm/backends/blocks.h"
#include "tandem/comm/backends/keep_for_ever.h"
#include "tandem/comm/backends/native/offers.h"
#include "tandem/comm/schedules/schedule.h"
#include "tandem/core/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

namespace tandem::comm {

namespace {

constexpr std::int64_t kUnit = 16;  // bytes: parts begin where kernels can read as much at once
constexpr std::int64_t kSlotUnit = 256;

std::int64_t pieces_in(std::int64_t bytes, std::int64_t piece) { return (bytes + piece - 1) / piece; }

/// The part of some bytes that each rank reduces.
ByteRange part_of(std::int64_t bytes, int ranks, int rank) {
  const ElementRange units = chunk_range(pieces_in(bytes, kUnit), ranks, rank);
  const std::int64_t begin = std::min(bytes, units.begin * kUnit);
  return {begin, std::min(bytes, (units.begin + units.count) * kUnit) - begin};
}

/// What a segment has of so many bytes.
ByteRange segment_of(std::int64_t bytes, std::int64_t segment_bytes, std::int64_t index) {
  const std::int64_t begin = std::min(bytes, index * segment_bytes);
  return {begin, std::min(segment_bytes, bytes - begin)};
}

/// Windows whose memory others have not given back yet: they are freed when somebody looks here again and all have.
class ParkedWindows {
 public:
  struct Parked {
    std::unique_ptr<DeviceWindow> window;
    std::shared_ptr<SharedMemory> memory;
    int rank, ranks;

    bool may_be_freed() const {
      for (int other = 0; other < ranks; ++other) {
        const auto* const area = memory->data() + other * DeviceEngine::area_bytes();
        if (other != rank && !reinterpret_cast<const DeviceRankArea*>(area)->has_closed.load(std::memory_order_acquire))
          return false;
      }
      return true;
    }
  };

  void add(Parked parked) {
    const std::lock_guard lock(mutex_);
    parked_.push_back(std::move(parked));
  }
  void free_what_may_be() {
    const std::lock_guard lock(mutex_);
    std::erase_if(parked_, [](const Parked& parked) { return parked.may_be_freed(); });
  }

 private:
  std::mutex mutex_;
  std::vector<Parked> parked_;
};

ParkedWindows& parked_windows() {
  static ParkedWindows& all = *new ParkedWindows;  // never destroyed: the process's end frees what is left
  return all;
}

}  // namespace

std::int64_t result_slot_bytes(std::int64_t segment_bytes, int ranks) {
  return pieces_in((pieces_in(segment_bytes, kUnit) / ranks + 1) * kUnit, kSlotUnit) * kSlotUnit;
}

std::int64_t DeviceEngine::area_bytes() { return pieces_in(sizeof(DeviceRankArea), kSlotUnit) * kSlotUnit; }

DeviceEngine::DeviceEngine(std::unique_ptr<DeviceWindow> window, std::shared_ptr<SharedMemory> memory, int rank,
                           int ranks, const PeerProcesses& peers, const DeviceSegments& segments)
    : window_(std::move(window)),
      memory_(std::move(memory)),
      rank_(rank),
      ranks_(ranks),
      peers_(peers),
      segments_(segments) {
  parked_windows().free_what_may_be();
}

/// Others may still read this rank's memory, and nobody waits for them here.
DeviceEngine::~DeviceEngine() {
  // A process that was made by fork() has no part in the group.
  const bool is_clean = process_ == getpid() && !failure_ && queue_.empty() && issued_.empty();
  try {
    if (is_clean) {
      window_->close();
      mine().has_closed.store(true, std::memory_order_release);
      parked_windows().add({std::move(window_), std::move(memory_), rank_, ranks_});
      parked_windows().free_what_may_be();
      return;
    }
  } catch (const std::exception&) {  // the device has failed
  }
  // A stream may still wait for others, and write then.
  for (auto* const operations : {&queue_, &issued_})
    for (std::shared_ptr<DeviceOperation>& operation : *operations) detail::keep_for_ever(std::move(operation));
  detail::keep_for_ever(std::shared_ptr<DeviceWindow>(std::move(window_)));
  detail::keep_for_ever(std::move(memory_));
}

bool DeviceEngine::takes(CollectiveKind kind) {
  return kind == CollectiveKind::all_reduce || kind == CollectiveKind::reduce || kind == CollectiveKind::broadcast ||
         kind == CollectiveKind::all_gather || kind == CollectiveKind::reduce_scatter;
}

DeviceRankArea& DeviceEngine::area(int rank) const {
  return *reinterpret_cast<DeviceRankArea*>(memory_->data() + rank * area_bytes());
}

std::shared_ptr<DeviceOperation> DeviceEngine::start(const Collective& collective) {
  auto operation = std::make_shared<DeviceOperation>(DeviceOperation{.collective = collective});
  if (failure_) {
    operation->fault = failure_;
    operation->stage = Stage::complete;
    return operation;
  }
  note_place(true);
  operation->ordinal = ordinal_;
  operation->ready.record(current_stream(device()));
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
      if (queue_.front()->stage == Stage::issued) issued_.push_back(queue_.front());
      if (queue_.front()->stage >= Stage::issued) queue_.pop_front();
    }
  } catch (...) {
    fail_here(std::current_exception());
    return true;
  }
  return moved;
}

bool DeviceEngine::poll_issued() {
  bool moved = false;
  while (!issued_.empty() && issued_.front()->done.is_done()) {
    issued_.front()->stage = Stage::complete;
    issued_.pop_front();
    moved = true;
  }
  return moved;
}

/// Whether it moved.
bool DeviceEngine::advance(DeviceOperation& operation) {
  switch (operation.stage) {
    case Stage::queued:
      offer(operation);
      return true;
    case Stage::offered:
      return try_begin(operation);
    case Stage::moving:
      return advance_segments(operation);
    case Stage::issued:
    case Stage::complete:
      break;
  }
  return false;
}

void DeviceEngine::offer(DeviceOperation& operation) {
  operation.number = ++number_;
  DeviceRankArea::OfferCell& cell = mine().cells[operation.number % 2];
  cell.offer = offer_of(operation.collective);
  cell.number.store(operation.number, std::memory_order_release);
  operation.stage = Stage::offered;
}

void DeviceEngine::note_place(bool is_on_gpu) {
  ++ordinal_;
  mine().places[ordinal_ % DeviceRankArea::kPlaces].store(2 * ordinal_ + (is_on_gpu ? 1 : 0),
                                                          std::memory_order_release);
}

bool DeviceEngine::has_offered(const DeviceOperation& operation, int rank) const {
  return area(rank).cells[operation.number % 2].number.load(std::memory_order_acquire) == operation.number;
}

bool DeviceEngine::try_begin(DeviceOperation& operation) {
  check_failures(operation);
  for (int rank = 0; rank < ranks_; ++rank)
    if (!has_offered(operation, rank)) {
      const std::uint64_t place =
          area(rank).places[operation.ordinal % DeviceRankArea::kPlaces].load(std::memory_order_acquire);
      require(place != 2 * operation.ordinal,
              "{}: is between GPUs here, and by host memory on rank {}: all ranks must call the same collectives, with "
              "tensors on the GPUs of their group, or all elsewhere",
              describe(operation.collective), rank);
      return false;
    }
  try {
    const auto cell = operation.number % 2;
    for (int rank = 1; rank < ranks_; ++rank)
      require_alike(area(0).cells[cell].offer, area(rank).cells[cell].offer, rank);
  } catch (...) {  // on all ranks: none of them moves anything
    operation.fault = std::current_exception();
    operation.stage = Stage::complete;
    return true;
  }
  const Collective& c = operation.collective;
  operation.by_parts =
      c.kind == CollectiveKind::all_reduce && ranks_ > 2 && c.bytes(c.count()) >= segments_.parts_from_bytes;
  operation.first = taken_;
  operation.end = operation.first + static_cast<std::uint64_t>(segments_of(c));
  operation.stage = Stage::moving;
  window_->stream().wait(operation.ready);
  return true;
}

/// Bytes that a segment of a reduce_scatter has for each rank.
std::int64_t DeviceEngine::scatter_bytes() const { return std::max(kUnit, segments_.bytes / ranks_ / kUnit * kUnit); }

std::int64_t DeviceEngine::segments_of(const Collective& c) const {
  const std::int64_t bytes = c.kind == CollectiveKind::reduce_scatter ? scatter_bytes() : segments_.bytes;
  return pieces_in(c.bytes(c.counts.empty() ? 0 : *std::ranges::max_element(c.counts)), bytes);
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

void DeviceEngine::wait_for_others(DeviceMark mark, std::uint64_t segment) {
  for (int rank = 0; rank < ranks_; ++rank)
    if (rank != rank_) window_->wait_for(rank, mark, segment);
}

void DeviceEngine::copy_in(const DeviceOperation& operation, std::uint64_t segment) {
  const Collective& c = operation.collective;
  const auto index = static_cast<std::int64_t>(segment - operation.first);
  if (segment >= DeviceWindow::kSlots) wait_for_others(DeviceMark::taken, segment - DeviceWindow::kSlots);
  std::byte* const slot = window_->input_slot(rank_, segment);
  const auto* const input = static_cast<const std::byte*>(c.input);
  if (c.kind == CollectiveKind::reduce_scatter) {
    const std::vector<Block> parts = blocks_of(c.input, c.counts, c.dtype);
    for (int rank = 0; rank < ranks_; ++rank) {
      const Block& part = parts[static_cast<std::size_t>(rank)];
      const ByteRange range = segment_of(part.bytes, scatter_bytes(), index);
      window_->copy(part.data + range.begin, slot + rank * scatter_bytes(), range.bytes);
    }
  } else if (c.kind != CollectiveKind::broadcast || c.peer == rank_) {
    const bool is_piece = c.kind == CollectiveKind::all_gather;
    const std::int64_t count = is_piece ? c.counts[static_cast<std::size_t>(rank_)] : c.count();
    const ByteRange range = segment_of(c.bytes(count), segments_.bytes, index);
    window_->copy(input + range.begin, slot, range.bytes);
  }
  window_->record(DeviceMark::copied, segment);
}

void DeviceEngine::reduce_part(const DeviceOperation& operation, std::uint64_t segment) {
  const Collective& c = operation.collective;
  wait_for_others(DeviceMark::copied, segment);
  const auto index = static_cast<std::int64_t>(segment - operation.first);
  const ByteRange range = segment_of(c.bytes(c.count()), segments_.bytes, index);
  const ByteRange part = part_of(range.bytes, ranks_, rank_);
  window_->reduce(segment, part.begin, part.bytes / size_of(c.dtype), c.dtype, c.op,
                  window_->result_slot(rank_, segment));
  window_->record(DeviceMark::reduced, segment);
}

void DeviceEngine::take(const DeviceOperation& operation, std::uint64_t segment) {
  wait_for_others(operation.by_parts ? DeviceMark::reduced : DeviceMark::copied, segment);
  if (operation.collective.output != nullptr) take_result(operation, segment);
}

void DeviceEngine::take_result(const DeviceOperation& operation, std::uint64_t segment) {
  const Collective& c = operation.collective;
  const auto index = static_cast<std::int64_t>(segment - operation.first);
  auto* const output = static_cast<std::byte*>(c.output);
  switch (c.kind) {
    case CollectiveKind::reduce_scatter: {
      const std::int64_t bytes = c.bytes(c.counts[static_cast<std::size_t>(rank_)]);
      const ByteRange range = segment_of(bytes, scatter_bytes(), index);
      return window_->reduce(segment, rank_ * scatter_bytes(), range.bytes / size_of(c.dtype), c.dtype, c.op,
                             output + range.begin);
    }
    case CollectiveKind::all_gather: {
      const std::vector<Block> pieces = blocks_of(c.output, c.counts, c.dtype);
      for (int rank = 0; rank < ranks_; ++rank) {
        const Block& piece = pieces[static_cast<std::size_t>(rank)];
        const ByteRange range = segment_of(piece.bytes, segments_.bytes, index);
        if (rank != rank_ || piece.data != c.input)
          window_->copy(window_->input_slot(rank, segment), piece.data + range.begin, range.bytes);
      }
      return;
    }
    default:
      break;
  }
  const ByteRange range = segment_of(c.bytes(c.count()), segments_.bytes, index);
  if (c.kind == CollectiveKind::broadcast) {
    if (c.peer != rank_) window_->copy(window_->input_slot(c.peer, segment), output + range.begin, range.bytes);
  } else if (operation.by_parts) {
    for (int rank = 0; rank < ranks_; ++rank) {
      const ByteRange part = part_of(range.bytes, ranks_, rank);
      window_->copy(window_->result_slot(rank, segment), output + range.begin + part.begin, part.bytes);
    }
  } else {
    window_->reduce(segment, 0, range.bytes / size_of(c.dtype), c.dtype, c.op, output + range.begin);
  }
}

void DeviceEngine::check_failures(const DeviceOperation& operation) const {
  for (int rank = 0; rank < ranks_; ++rank)
    require(!area(rank).has_failed.load(std::memory_order_acquire), "{}: rank {} failed in it",
            describe(operation.collective), rank);
}

/// Streams do not go on as others expect: those learn it.
void DeviceEngine::fail_here(std::exception_ptr fault) {
  failure_ = std::move(fault);
  mine().has_failed.store(true, std::memory_order_release);
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
  if (operation.stage == Stage::offered) return !has_offered(operation, rank);
  return operation.stage == Stage::issued || area(rank).taken.get() < operation.end;
}

std::string DeviceEngine::waits_for() const {
  const DeviceOperation* const operation = first();
  if (operation == nullptr) return "";
  if (operation->stage == Stage::issued) return "GPU memory, for the GPUs";
  for (int rank = 0; rank < ranks_; ++rank)
    if (rank != rank_ && waits_for(*operation, rank))
      return fmt::format("GPU memory, for rank {} to {}", rank,
                         operation->stage == Stage::offered ? "enter" : "do its part");
  return "GPU memory";
}

void DeviceEngine::check_peers() {
  constexpr int kLooksBetween = 1000;
  // A launcher that ends all ranks when one has ended is quicker than this, and its text says more.
  constexpr std::chrono::seconds kPatience{2};
  const DeviceOperation* const operation = first();
  if (operation == nullptr || ++idle_looks_ % kLooksBetween != 0) return;
  for (int rank = 0; rank < ranks_; ++rank) {
    if (rank == rank_ || !waits_for(*operation, rank) || !peers_.has_ended(rank)) continue;
    if (ended_since_ == Clock::time_point()) ended_since_ = Clock::now();
    if (Clock::now() - ended_since_ < kPatience) return;
    const std::string text = fmt::format("{}: rank {} (process {}) has ended, and rank {} waits for it",
                                         describe(operation->collective), rank, peers_.process(rank), rank_);
    fail_here(std::make_exception_ptr(Error(text)));
    throw Error(text);
  }
  ended_since_ = {};
}

}  // namespace tandem::comm

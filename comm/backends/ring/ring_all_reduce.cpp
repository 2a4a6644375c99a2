// The ring's state machine: keep receives posted, reduce what has come, pass it on.
#include "tandem/comm/backends/ring/ring_all_reduce.h"

#include "tandem/comm/backends/flat_math.h"

#include <algorithm>

namespace tandem::comm {

RingAllReduce::RingAllReduce(Transport& transport, int ranks, int rank, int tag, CollectiveBuffer buffer, ReduceOp op,
                             const RingOptions& options)
    : transport_(transport),
      ranks_(ranks),
      tag_(tag),
      buffer_(std::move(buffer)),
      op_(op),
      depth_(std::max<std::int64_t>(1, options.depth)),
      segment_elements_(std::max<std::int64_t>(1, options.segment_bytes / size_of(buffer_.dtype))) {
  const std::vector<RingStep> schedule = ring_schedule(ranks, rank);
  const auto for_each_segment = [&](int chunk, auto&& visit) {
    const ElementRange range = chunk_range(buffer_.count, ranks, chunk);
    for (std::int64_t at = 0; at < range.count; at += segment_elements_) {
      visit(ElementRange{range.begin + at, std::min(segment_elements_, range.count - at)});
    }
  };
  for (std::size_t i = 0; i < schedule.size(); ++i) {
    const RingStep& step = schedule[i];
    send_to_ = step.send_to;
    receive_from_ = step.receive_from;
    const bool last_reduction = step.reduce && !schedule[i + 1].reduce;
    for_each_segment(step.send_chunk, [&](ElementRange range) { sends_.push_back(range); });
    for_each_segment(step.receive_chunk,
                     [&](ElementRange range) { receives_.push_back({range, step.reduce, last_reduction}); });
    if (i == 0) own_sends_ = sends_.size();
    if (step.reduce) reductions_ = receives_.size();
  }
  if (reductions_ > 0) {
    const std::int64_t slots = std::min<std::int64_t>(depth_, static_cast<std::int64_t>(reductions_));
    slots_ = std::make_unique<Storage>(slots * segment_elements_ * size_of(buffer_.dtype), Device{}, MemoryTag::comm);
  }
}

std::byte* RingAllReduce::address(std::int64_t element) const {
  return static_cast<std::byte*>(buffer_.data) + element * size_of(buffer_.dtype);
}

std::byte* RingAllReduce::receive_slot(std::size_t receive) const {
  const auto slot = static_cast<std::int64_t>(receive) % depth_;
  return static_cast<std::byte*>(slots_->data()) + slot * segment_elements_ * size_of(buffer_.dtype);
}

bool RingAllReduce::may_receive() const {
  const std::size_t next = received_ + receiving_.size();
  if (next == receives_.size() || static_cast<std::int64_t>(receiving_.size()) == depth_) return false;
  // The j-th segment of the all-gather lands where the j-th send came from: that send must have let go of the memory.
  return next < reductions_ || sent_ > next - reductions_;
}

void RingAllReduce::start_receive() {
  const std::size_t next = received_ + receiving_.size();
  const Segment& segment = receives_[next];
  std::byte* const to = segment.reduce ? receive_slot(next) : address(segment.elements.begin);
  receiving_.push_back(transport_.receive(receive_from_, tag_, to, segment.elements.count * size_of(buffer_.dtype)));
}

void RingAllReduce::finish_receive() {
  const Segment& segment = receives_[received_];
  if (segment.reduce) {
    std::byte* const into = address(segment.elements.begin);
    reduce_into(into, receive_slot(received_), segment.elements.count, buffer_.dtype, op_);
    if (segment.last_reduction && op_ == ReduceOp::average) {
      divide(into, segment.elements.count, buffer_.dtype, ranks_);
    }
  }
  receiving_.pop_front();
  ++received_;
}

bool RingAllReduce::may_send() const {
  const std::size_t next = sent_ + sending_.size();
  if (next == sends_.size() || static_cast<std::int64_t>(sending_.size()) == depth_) return false;
  return next < own_sends_ + received_;
}

void RingAllReduce::start_send() {
  const ElementRange& elements = sends_[sent_ + sending_.size()];
  const std::int64_t bytes = elements.count * size_of(buffer_.dtype);
  sending_.push_back(transport_.send(send_to_, tag_, address(elements.begin), bytes));
  bytes_sent_ += bytes;
}

bool RingAllReduce::poll() {
  bool moved = true;
  while (moved) {
    moved = false;
    while (may_receive()) start_receive();
    while (may_send()) start_send();
    if (!receiving_.empty() && receiving_.front()->done()) {
      finish_receive();
      moved = true;
    }
    if (!sending_.empty() && sending_.front()->done()) {
      sending_.pop_front();
      ++sent_;
      moved = true;
    }
  }
  return received_ == receives_.size() && sent_ == sends_.size();
}

}  // namespace tandem::comm

// Keeps receives posted, combines what has come, and passes it on.
#include "tandem/comm/backends/native/schedule_run.h"

#include "tandem/comm/backends/flat_math.h"
#include "tandem/core/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

namespace tandem::comm {

ScheduleRun::ScheduleRun(Transport& transport, std::shared_ptr<const Schedule> schedule, int rank, int tag,
                         const std::vector<ChunkMemory>& chunks, const Elements& elements,
                         const SegmentOptions& options)
    : transport_(transport),
      schedule_(std::move(schedule)),
      rank_(rank),
      tag_(tag),
      elements_(elements),
      segment_elements_(std::max<std::int64_t>(1, options.segment_bytes / size_of(elements.dtype))) {
  require(chunks.size() == static_cast<std::size_t>(schedule_->chunks), "schedule {}: {} chunks for a table of {}",
          schedule_->name, chunks.size(), schedule_->chunks);
  // Where no chunk is as long as a segment, slots need not be either.
  const auto most = std::ranges::max_element(chunks, {}, &ChunkMemory::count);
  if (most != chunks.end()) segment_elements_ = std::clamp<std::int64_t>(most->count, 1, segment_elements_);
  depth_ = static_cast<std::size_t>(options.messages_at_once(segment_elements_ * size_of(elements.dtype)));
  add_tasks(cut(chunks));
  sends_ = make_turns(&Channel::sends);
  receives_ = make_turns(&Channel::receives);
  for (Channel& channel : channels_) {
    if (!channel.sends.empty() || !channel.receives.empty()) ++open_channels_;
    if (channel.reductions == 0) continue;
    const auto slots = static_cast<std::int64_t>(std::min(depth_, channel.reductions));
    channel.slots =
        std::make_unique<Storage>(slots * segment_elements_ * size_of(elements_.dtype), Device{}, MemoryTag::comm);
  }
}

/// Cuts chunks into segments; which they are, by chunk.
std::vector<std::vector<std::size_t>> ScheduleRun::cut(const std::vector<ChunkMemory>& chunks) {
  std::vector<std::vector<std::size_t>> result(chunks.size());
  for (std::size_t chunk = 0; chunk < chunks.size(); ++chunk) {
    const ChunkMemory& memory = chunks[chunk];
    for (std::int64_t at = 0; at < memory.count; at += segment_elements_) {
      result[chunk].push_back(segments_.size());
      std::byte* const data = memory.data == nullptr ? nullptr : memory.data + at * size_of(elements_.dtype);
      segments_.push_back({data, std::min(segment_elements_, memory.count - at), result[chunk].size() - 1});
    }
  }
  return result;
}

void ScheduleRun::add_tasks(const std::vector<std::vector<std::size_t>>& segments_of_chunk) {
  std::vector<std::pair<int, int>> before(segments_.size());  // steps and writes
  for (const Step& step : schedule_->of_rank[static_cast<std::size_t>(rank_)]) {
    for (const std::size_t segment : segments_of_chunk[static_cast<std::size_t>(step.chunk)]) {
      auto& [steps, writes] = before[segment];
      Channel& channel = channel_of(step.peer);
      (step.action == Action::send ? channel.sends : channel.receives).push_back({segment, step, steps, writes});
      if (step.action == Action::reduce) ++channel.reductions;
      if (step.action != Action::send) ++writes;
      ++steps;
    }
  }
}

ScheduleRun::Channel& ScheduleRun::channel_of(int peer) {
  const auto found = std::ranges::find(channels_, peer, &Channel::peer);
  if (found != channels_.end()) return *found;
  channels_.emplace_back().peer = peer;
  return channels_.back();
}

Turns ScheduleRun::make_turns(std::vector<Task> Channel::* tasks) const {
  Turns turns;
  if (std::ranges::count_if(channels_, [&](const Channel& channel) { return !(channel.*tasks).empty(); }) < 2)
    return turns;
  for (const Channel& channel : channels_) {
    for (const Task& task : channel.*tasks) {
      const Segment& segment = segments_[task.segment];
      turns.add(segment.wave, static_cast<std::size_t>(task.step.round), bytes_of(segment));
    }
  }
  turns.begin();
  return turns;
}

/// Whether all of the rounds before are complete, or need not be.
bool ScheduleRun::is_in_turn(const Turns& turns, const Task& task) const {
  return turns.is_empty() || turns.has_turn(segments_[task.segment].wave, static_cast<std::size_t>(task.step.round));
}

void ScheduleRun::end_turn(Turns& turns, const Task& task) const {
  if (turns.is_empty()) return;
  turns.end(segments_[task.segment].wave, static_cast<std::size_t>(task.step.round));
}

std::string ScheduleRun::waits_for() const {
  const auto text = [&](const Task& task, int peer) {
    return fmt::format("step {} of {}, for rank {}", task.step.round + 1, schedule_->name, peer);
  };
  // A receive whose segment has steps before it may have come: what those wait for is missing.
  for (const Channel& channel : channels_) {
    if (channel.receiving.empty()) continue;
    const Task& task = channel.receives[channel.received];
    if (segments_[task.segment].steps >= task.steps_before) return text(task, channel.peer);
  }
  for (const Channel& channel : channels_)
    if (!channel.sending.empty()) return text(channel.sends[channel.sent], channel.peer);
  for (const Channel& channel : channels_)
    if (!channel.receiving.empty()) return text(channel.receives[channel.received], channel.peer);
  return "";
}

bool ScheduleRun::poll() {
  look_at_clock();
  bool moved = true;
  while (moved && open_channels_ > 0) {
    moved = false;
    for (Channel& channel : channels_) moved = advance(channel) || moved;
  }
  if (trace_ != nullptr && open_channels_ == 0) std::exchange(trace_, nullptr)->finish(number_);
  return open_channels_ == 0;
}

/// As far as it goes; whether anything moved that other channels may have waited for.
bool ScheduleRun::advance(Channel& channel) {
  const auto is_open = [&] {
    return channel.sent < channel.sends.size() || channel.received < channel.receives.size();
  };
  if (!is_open()) return false;
  while (try_receive(channel)) continue;
  while (try_send(channel)) continue;
  bool moved = try_finish_receive(channel);
  moved = try_finish_send(channel) || moved;
  if (!is_open()) --open_channels_;
  return moved;
}

bool ScheduleRun::try_receive(Channel& channel) {
  const std::size_t next = channel.received + channel.receiving.size();
  if (next == channel.receives.size() || channel.receiving.size() == depth_) return false;
  const Task& task = channel.receives[next];
  if (!is_in_turn(receives_, task)) return false;
  const Segment& segment = segments_[task.segment];
  std::byte* into = segment.data;
  std::byte* slot = nullptr;
  if (task.step.action == Action::reduce) {
    // At most `depth_` are on their way, and they end in order: the slot of the one before last is free again.
    const auto index = static_cast<std::int64_t>(channel.next_slot++ % depth_);
    slot = static_cast<std::byte*>(channel.slots->data()) + index * segment_elements_ * size_of(elements_.dtype);
    into = slot;
  } else if (segment.steps < task.steps_before) {
    return false;  // what lies there is still to be sent
  }
  if (trace_ != nullptr) channel.receive_begins.push_back(trace_->now_ns());
  channel.receiving.push_back(transport_.receive(channel.peer, tag_, into, bytes_of(segment)));
  channel.occupied.push_back(slot);
  return true;
}

bool ScheduleRun::try_finish_receive(Channel& channel) {
  const std::int64_t looked_ns = trace_ == nullptr ? 0 : trace_->now_ns();
  if (channel.receiving.empty() || !channel.receiving.front()->done()) return false;
  const std::int64_t came_ns = look_at_clock();
  const Task& task = channel.receives[channel.received];
  Segment& segment = segments_[task.segment];
  if (segment.steps < task.steps_before) return false;  // it has come, and what lies there is still to be sent
  if (task.step.action == Action::reduce) {
    combine(task, channel.occupied.front());
    look_at_clock();
  }
  if (trace_ != nullptr) {
    // Behind the one before it: messages of a channel come one after another.
    const std::int64_t begin_ns = std::max(channel.receive_begins[channel.received], channel.received_ns);
    record(channel.peer, task, begin_ns, looked_ns, came_ns);
    channel.received_ns = trace_->now_ns();
  }
  channel.receiving.pop_front();
  channel.occupied.pop_front();
  end_turn(receives_, task);
  ++channel.received;
  ++segment.steps;
  ++segment.writes;
  ++messages_;
  return true;
}

void ScheduleRun::combine(const Task& task, const std::byte* received) {
  const Segment& segment = segments_[task.segment];
  reduce_into(segment.data, received, segment.count, elements_.dtype, elements_.op, task.step.peer_is_left);
  if (task.step.completes && elements_.op == ReduceOp::average)
    divide(segment.data, segment.count, elements_.dtype, schedule_->ranks);
}

/// A message that was there or had left at `came_ns`, and not yet at `looked_ns`, with what was done since.
void ScheduleRun::record(int peer, const Task& task, std::int64_t begin_ns, std::int64_t looked_ns,
                         std::int64_t came_ns) {
  constexpr std::string_view kActions[] = {"send", "receive", "reduce"};
  const Segment& segment = segments_[task.segment];
  const std::int64_t waited_ns = std::max(looked_ns, begin_ns);
  CommunicationStep step{.action = kActions[static_cast<std::size_t>(task.step.action)],
                         .round = task.step.round + 1,
                         .peer = peer,
                         .chunk = task.step.chunk,
                         .segment = static_cast<int>(segment.wave),
                         .bytes = bytes_of(segment),
                         .begin_ns = begin_ns,
                         .wait_ns = waited_ns - begin_ns,
                         .copy_ns = came_ns - waited_ns};
  if (task.step.action == Action::reduce) step.reduce_ns = trace_->now_ns() - came_ns;
  trace_->add(step);
}

bool ScheduleRun::try_send(Channel& channel) {
  const std::size_t next = channel.sent + channel.sending.size();
  if (next == channel.sends.size() || channel.sending.size() == depth_) return false;
  const Task& task = channel.sends[next];
  const Segment& segment = segments_[task.segment];
  if (segment.writes < task.writes_before || !is_in_turn(sends_, task)) return false;
  if (trace_ != nullptr) channel.send_begins.push_back(trace_->now_ns());
  channel.sending.push_back(transport_.send(channel.peer, tag_, segment.data, bytes_of(segment)));
  bytes_sent_ += bytes_of(segment);
  return true;
}

bool ScheduleRun::try_finish_send(Channel& channel) {
  if (channel.sending.empty() || !channel.sending.front()->done()) return false;
  channel.sending.pop_front();
  if (trace_ != nullptr)
    record(channel.peer, channel.sends[channel.sent], channel.send_begins[channel.sent], trace_->now_ns(),
           trace_->now_ns());
  end_turn(sends_, channel.sends[channel.sent]);
  ++segments_[channel.sends[channel.sent].segment].steps;
  ++channel.sent;
  ++messages_;
  return true;
}

}  // namespace tandem::comm

// All ranks' parts of a schedule, event by event.
#include "tandem/comm/cost/predict.h"

#include "tandem/comm/schedules/turns.h"
#include "tandem/core/error.h"

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

namespace tandem::comm {

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

/// A part of a chunk on one rank, as ScheduleRun keeps it, and when its last step and its last write ended.
struct Segment {
  std::size_t wave = 0;
  int steps = 0, writes = 0;
  double stepped = 0.0, written = 0.0;
};

/// A step of a segment. `before`: the steps (of a receive) or writes (of a send) that must have ended.
struct Task {
  std::size_t segment = 0;
  std::int64_t bytes = 0;
  int before = 0;
  bool combines = false;
  std::size_t round = 0;
};

/// Turns, and when the last round of each wave began to have one.
struct TimedTurns {
  Turns turns = {};
  std::vector<double> begun = {};
};

/// What a rank exchanges with one other, in the order of the schedule. Of tasks that were carried out, when what was
/// sent has come, and when what was received was dealt with.
struct Channel {
  std::size_t peer = 0, opposite = 0;  // that rank, and which of its channels leads back
  std::vector<Task> sends, receives;
  std::vector<double> arrived, received;
};

struct Rank {
  double free_from = 0.0;                          // its processor
  double out_free_from = 0.0, in_free_from = 0.0;  // its ways to other hosts, and from them
  std::vector<Segment> segments;
  std::vector<Channel> channels;
  TimedTurns send_turns, receive_turns;
};

/// What the ranks of a host share.
struct Host {
  std::size_t ranks = 0;
  std::vector<double> cores_free_from = {};  // empty where each rank has a core
  double speed = 1.0;                        // of a rank that runs, beside that of all of them at once
};

/// What messages of one kind cost in a collective of some size.
class Link {
 public:
  /// Short messages take their latency, in part of which they keep ranks busy; the rest of a message's time goes by its
  /// bytes. Data of `total` bytes go through caches, and segments follow each other, as when so many bytes were
  /// measured.
  Link(const CostCurve& curve, double overhead, std::int64_t total, std::int64_t segment)
      : curve_(&curve), at_once_(curve.at(0)), overhead_(std::min(overhead, at_once_)) {
    if (total <= segment) return;
    const double segments = static_cast<double>(total) / static_cast<double>(segment);
    const double one = curve.at(segment) - at_once_;
    if (one > 0.0) scale_ = (curve.at(total) - at_once_) / (segments * one);
  }
  double latency() const { return at_once_ - overhead_; }
  /// Seconds that sending a message and receiving one keep a rank busy, however long they are.
  double overhead() const { return overhead_; }
  /// And what more the bytes take.
  double transfer(std::int64_t bytes) const { return (curve_->at(bytes) - at_once_) * scale_; }

 private:
  const CostCurve* curve_;
  double at_once_;
  double overhead_;
  double scale_ = 1.0;
};

/// What a rank can do next.
struct Next {
  double begin = kNever;
  double asked = kNever;  // when the rank was ready for it: before `begin` where it, its way out or the peer was not
  std::size_t channel = 0;
  bool sends = false;

  bool is_before(const Next& other) const {
    return begin < other.begin || (begin == other.begin && asked < other.asked);
  }
};

class Simulation {
 public:
  Simulation(const Schedule& schedule, std::span<const int> node_of_rank, std::int64_t bytes, const MessageCosts& costs,
             const SegmentOptions& options)
      : nodes_(node_of_rank),
        total_(bytes),
        costs_(costs),
        options_(options),
        near_(costs.within_host, costs.overhead, bytes, options.segment_bytes),
        far_(costs.between_hosts, costs.overhead, bytes, options.segment_bytes) {
    const std::int64_t longest = chunk_range(bytes, schedule.chunks, 0).count;
    depth_ = static_cast<std::size_t>(options.messages_at_once(std::min(longest, options.segment_bytes)));
    for (int rank = 0; rank < schedule.ranks; ++rank) ranks_.push_back(tasks_of(schedule, rank));
    join_channels();
    if (costs.shared_cores > 0) share_cores();
  }

  double run() {
    std::vector<Next> next;
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) next.push_back(next_of(rank));
    double end = 0.0;
    for (std::size_t done = 0; done < tasks_; ++done) {
      std::size_t rank = 0;
      double begin = kNever;
      for (std::size_t i = 0; i < next.size(); ++i) {
        const double here = std::max(next[i].begin, core_free_from(i));
        // What comes at one time may let others send first: sends are behind all receives of that time.
        const bool is_first = here < begin || (here == begin && next[rank].sends && !next[i].sends);
        if (here == kNever || !is_first) continue;
        begin = here;
        rank = i;
      }
      require(begin < kNever, "predicted_seconds: {} of {} steps wait for each other", tasks_ - done, tasks_);
      const std::size_t peer = ranks_[rank].channels[next[rank].channel].peer;
      end = std::max(end, carry_out(rank, next[rank], begin));
      next[rank] = next_of(rank);
      next[peer] = next_of(peer);
      if (!std::exchange(asks_for_more_, false)) continue;
      for (const Channel& channel : ranks_[rank].channels) next[channel.peer] = next_of(channel.peer);
    }
    return costs_.start + end;
  }

 private:
  /// Ranks that outnumber the cores of their host: what was measured took as much longer as there are more ranks.
  void share_cores() {
    const auto cores = static_cast<std::size_t>(costs_.shared_cores);
    std::map<int, Host> hosts;
    for (const int node : nodes_) ++hosts[node].ranks;
    host_of_rank_.resize(nodes_.size());
    for (auto& [node, host] : hosts) {
      if (host.ranks <= cores) continue;
      host.cores_free_from.assign(cores, 0.0);
      host.speed = static_cast<double>(host.ranks) / static_cast<double>(cores);
      const auto shared = std::make_shared<Host>(std::move(host));
      for (std::size_t rank = 0; rank < nodes_.size(); ++rank)
        if (nodes_[rank] == node) host_of_rank_[rank] = shared;
    }
  }

  double core_free_from(std::size_t rank) const {
    if (host_of_rank_.empty() || !host_of_rank_[rank]) return 0.0;
    return std::ranges::min(host_of_rank_[rank]->cores_free_from);
  }

  Rank tasks_of(const Schedule& schedule, int number) {
    Rank rank;
    std::vector<std::size_t> first_segment;
    std::vector<std::int64_t> chunk_bytes;
    for (int chunk = 0; chunk < schedule.chunks; ++chunk) {
      first_segment.push_back(rank.segments.size());
      chunk_bytes.push_back(chunk_range(total_, schedule.chunks, chunk).count);
      const std::int64_t segments = (chunk_bytes.back() + options_.segment_bytes - 1) / options_.segment_bytes;
      for (std::int64_t wave = 0; wave < segments; ++wave)
        rank.segments.push_back({.wave = static_cast<std::size_t>(wave)});
    }
    first_segment.push_back(rank.segments.size());
    std::vector<std::pair<int, int>> before(rank.segments.size());  // steps and writes
    for (const Step& step : schedule.of_rank[static_cast<std::size_t>(number)]) {
      const auto chunk = static_cast<std::size_t>(step.chunk);
      Channel& channel = channel_of(rank, step.peer);
      const bool sends = step.action == Action::send;
      for (std::size_t s = first_segment[chunk]; s < first_segment[chunk + 1]; ++s) {
        const std::int64_t begin = static_cast<std::int64_t>(s - first_segment[chunk]) * options_.segment_bytes;
        const std::int64_t bytes = std::min(options_.segment_bytes, chunk_bytes[chunk] - begin);
        auto& [steps, writes] = before[s];
        (sends ? channel.sends : channel.receives)
            .push_back({s, bytes, sends ? writes : steps, step.action == Action::reduce,
                        static_cast<std::size_t>(step.round)});
        if (!sends) ++writes;
        ++steps;
        ++tasks_;
      }
    }
    rank.send_turns = turns_of(rank, &Channel::sends);
    rank.receive_turns = turns_of(rank, &Channel::receives);
    return rank;
  }

  /// None where all are to one rank, or from one.
  static TimedTurns turns_of(const Rank& rank, std::vector<Task> Channel::* tasks) {
    TimedTurns result;
    if (std::ranges::count_if(rank.channels, [&](const Channel& channel) { return !(channel.*tasks).empty(); }) < 2)
      return result;
    for (const Channel& channel : rank.channels)
      for (const Task& task : channel.*tasks)
        result.turns.add(rank.segments[task.segment].wave, task.round, task.bytes);
    result.turns.begin();
    result.begun.resize(result.turns.waves());
    return result;
  }

  /// When a task's round has its turn: all rounds before are complete.
  static double turn_of(const Rank& rank, const TimedTurns& timed, const Task& task) {
    if (timed.turns.is_empty()) return 0.0;
    const std::size_t wave = rank.segments[task.segment].wave;
    if (!timed.turns.takes_turn(wave, task.round)) return 0.0;
    return timed.turns.has_turn(wave, task.round) ? timed.begun[wave] : kNever;
  }

  /// Whether another round has its turn now.
  static bool end_turn(const Rank& rank, TimedTurns& timed, const Task& task, double end) {
    if (timed.turns.is_empty()) return false;
    const std::size_t wave = rank.segments[task.segment].wave;
    if (!timed.turns.end(wave, task.round)) return false;
    timed.begun[wave] = std::max(timed.begun[wave], end);
    return true;
  }

  static Channel& channel_of(Rank& rank, int peer) {
    const auto number = static_cast<std::size_t>(peer);
    const auto found = std::ranges::find(rank.channels, number, &Channel::peer);
    if (found != rank.channels.end()) return *found;
    rank.channels.emplace_back().peer = number;
    return rank.channels.back();
  }

  void join_channels() {
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      for (std::size_t i = 0; i < ranks_[rank].channels.size(); ++i) {
        const std::size_t peer = ranks_[rank].channels[i].peer;
        const Channel& other = channel_of(ranks_[peer], static_cast<int>(rank));
        ranks_[rank].channels[i].opposite = static_cast<std::size_t>(&other - ranks_[peer].channels.data());
      }
    }
  }

  double send_ready(const Rank& rank, const Channel& channel, const Channel& other) const {
    const std::size_t index = channel.arrived.size();
    if (index == channel.sends.size() || index >= other.receives.size()) return kNever;  // all sent, or for nobody
    const Task& task = channel.sends[index];
    const Segment& segment = rank.segments[task.segment];
    if (segment.writes < task.before) return kNever;
    const Rank& receiver = ranks_[channel.peer];
    double ready = std::max({segment.written, turn_of(rank, rank.send_turns, task),
                             turn_of(receiver, receiver.receive_turns, other.receives[index])});
    if (index >= depth_) {
      if (other.received.size() + depth_ <= index) return kNever;
      ready = std::max(ready, other.received[index - depth_]);
    }
    return ready;
  }

  /// When the rank itself was ready to send its next, whatever the receiver was.
  static double send_asked(const Rank& rank, const Channel& channel) {
    const Task& task = channel.sends[channel.arrived.size()];
    return std::max(rank.segments[task.segment].written, turn_of(rank, rank.send_turns, task));
  }

  static double receive_ready(const Rank& rank, const Channel& channel, const Channel& other) {
    const std::size_t index = channel.received.size();
    if (index == channel.receives.size() || other.arrived.size() <= index) return kNever;
    const Task& task = channel.receives[index];
    const Segment& segment = rank.segments[task.segment];
    if (segment.steps < task.before) return kNever;
    return std::max(segment.stepped, other.arrived[index]);
  }

  /// What can begin first; of what can begin at one time, what the rank was ready for first, or a send, on which
  /// another rank waits.
  Next next_of(std::size_t number) const {
    const Rank& rank = ranks_[number];
    Next next;
    for (const bool sends : {true, false}) {
      for (std::size_t i = 0; i < rank.channels.size(); ++i) {
        const Channel& channel = rank.channels[i];
        const Channel& other = ranks_[channel.peer].channels[channel.opposite];
        Next here{.channel = i, .sends = sends};
        const double ready = sends ? send_ready(rank, channel, other) : receive_ready(rank, channel, other);
        if (ready == kNever) continue;
        here.begin = std::max(ready, rank.free_from);
        here.asked = sends ? send_asked(rank, channel) : ready;
        // A message takes its way in when it leaves, not when it is ready: others that leave before come first.
        if (sends && nodes_[number] != nodes_[channel.peer])
          here.begin = std::max(here.begin, rank.out_free_from - far_.overhead() / 2.0);
        if (here.is_before(next)) next = here;
      }
    }
    return next;
  }

  /// Its end.
  double carry_out(std::size_t number, const Next& next, double begin) {
    Rank& rank = ranks_[number];
    Channel& channel = rank.channels[next.channel];
    const Task& task = next.sends ? channel.sends[channel.arrived.size()] : channel.receives[channel.received.size()];
    const bool is_far = nodes_[number] != nodes_[channel.peer];
    const Link& link = is_far ? far_ : near_;
    // Within a host both ranks copy; between hosts the network carries the bytes, both ways at once.
    double seconds = (link.overhead() + (is_far ? 0.0 : link.transfer(task.bytes))) / 2.0;
    if (task.combines)
      seconds += costs_.combine.at(total_) * static_cast<double>(task.bytes) / static_cast<double>(total_);
    Host* const host = host_of_rank_.empty() ? nullptr : host_of_rank_[number].get();
    const double end = begin + (host != nullptr ? seconds / host->speed : seconds);
    if (host != nullptr) *std::ranges::min_element(host->cores_free_from) = end;
    rank.free_from = end;
    Segment& segment = rank.segments[task.segment];
    ++segment.steps;
    segment.stepped = end;
    if (!next.sends) {
      channel.received.push_back(end);
      asks_for_more_ = end_turn(rank, rank.receive_turns, task, end);
      ++segment.writes;
      return segment.written = end;
    }
    if (!is_far) {
      channel.arrived.push_back(end + link.latency());
      end_turn(rank, rank.send_turns, task, end);
      return end;
    }
    const double leaves = std::max(end, rank.out_free_from), transfer = link.transfer(task.bytes);
    segment.stepped = rank.out_free_from = leaves + transfer;
    double& in_free_from = ranks_[channel.peer].in_free_from;
    in_free_from = std::max(leaves + link.latency(), in_free_from) + transfer;
    channel.arrived.push_back(in_free_from);
    end_turn(rank, rank.send_turns, task, segment.stepped);
    return segment.stepped;
  }

  std::span<const int> nodes_;
  std::int64_t total_;
  const MessageCosts& costs_;
  const SegmentOptions& options_;
  std::size_t depth_ = 1;  // messages that may be on their way to a rank
  Link near_, far_;
  std::vector<Rank> ranks_;
  std::vector<std::shared_ptr<Host>> host_of_rank_;  // null where each of its ranks has a core; empty where all have
  std::size_t tasks_ = 0;
  bool asks_for_more_ = false;  // a rank has its turn to receive others
};

/// What was measured of such a schedule, or 1.
double correction_of(const Schedule& schedule, std::span<const int> node_of_rank, std::int64_t bytes,
                     const MessageCosts& costs) {
  if (costs.corrections.empty()) return 1.0;
  const std::set<int> nodes(node_of_rank.begin(), node_of_rank.end());
  for (const Correction& correction : costs.corrections)
    if (correction.algorithm == schedule.name && correction.ranks == schedule.ranks &&
        correction.hosts == static_cast<int>(nodes.size()))
      return correction.at(bytes);
  return 1.0;
}

}  // namespace

double predicted_seconds(const Schedule& schedule, std::span<const int> node_of_rank, std::int64_t bytes,
                         const MessageCosts& costs, const SegmentOptions& segments) {
  require(node_of_rank.size() == static_cast<std::size_t>(schedule.ranks),
          "predicted_seconds: hosts of {} ranks for a schedule of {}", node_of_rank.size(), schedule.ranks);
  require(bytes >= 0, "predicted_seconds: {} bytes", bytes);
  require(segments.segment_bytes > 0 && segments.depth > 0, "predicted_seconds: {} segments of {} bytes at once",
          segments.depth, segments.segment_bytes);
  check_costs(costs);
  return Simulation(schedule, node_of_rank, bytes, costs, segments).run() *
         correction_of(schedule, node_of_rank, bytes, costs);
}

}  // namespace tandem::comm

// All ranks' parts of a schedule, event by event.
#include "tandem/comm/cost/predict.h"

#include "tandem/comm/schedules/all_reduce_algorithms.h"
#include "tandem/core/error.h"

#include <algorithm>
#include <limits>
#include <map>
#include <string_view>
#include <utility>

namespace tandem::comm {

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

/// A part of a chunk on one rank, as ScheduleRun keeps it, and when its last step and its last write ended.
struct Segment {
  int steps = 0, writes = 0;
  double stepped = 0.0, written = 0.0;
};

/// A step of a segment. `before`: the steps (of a receive) or writes (of a send) that must have ended.
struct Task {
  std::size_t segment = 0;
  std::int64_t bytes = 0;
  int before = 0;
  bool combines = false;
};

/// What a rank exchanges with one other, in the order of the schedule. Of tasks that were carried out, the end.
struct Channel {
  int peer = 0;
  std::vector<Task> sends, receives;
  std::vector<double> sent, received;
};

struct Rank {
  double free_from = 0.0;  // its processor
  std::vector<Segment> segments;
  std::vector<Channel> channels;
};

/// What the ranks of a host share.
struct Host {
  std::size_t ranks = 0;
  std::vector<double> cores_free_from = {};  // empty where each rank has a core
  double speed = 1.0;                        // of a rank that runs, beside that of all of them at once
};

/// What a rank can do next.
struct Next {
  double begin = kNever;
  std::size_t channel = 0;
  bool sends = false;
};

class Simulation {
 public:
  Simulation(const Schedule& schedule, std::span<const int> node_of_rank, std::int64_t bytes, const MessageCosts& costs,
             const SegmentOptions& options)
      : nodes_(node_of_rank), total_(bytes), costs_(costs), options_(options) {
    require(node_of_rank.size() == static_cast<std::size_t>(schedule.ranks),
            "predicted_seconds: hosts of {} ranks for a schedule of {}", node_of_rank.size(), schedule.ranks);
    for (int rank = 0; rank < schedule.ranks; ++rank) ranks_.push_back(tasks_of(schedule, rank));
    if (costs.shared_cores > 0) share_cores();
  }

  double run() {
    std::vector<Next> next;
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) next.push_back(next_of(rank));
    double end = 0.0;
    while (true) {
      std::size_t rank = 0;
      double begin = kNever;
      for (std::size_t i = 0; i < next.size(); ++i) {
        const double here = std::max(next[i].begin, core_free_from(i));
        if (here >= begin) continue;
        begin = here;
        rank = i;
      }
      if (begin == kNever) return costs_.start + end;
      const auto peer = static_cast<std::size_t>(ranks_[rank].channels[next[rank].channel].peer);
      end = std::max(end, carry_out(rank, next[rank], begin));
      next[rank] = next_of(rank);
      next[peer] = next_of(peer);
    }
  }

 private:
  /// Ranks that outnumber the cores of their host: what was measured took as much longer as there are more ranks.
  void share_cores() {
    for (const int node : nodes_) ++hosts_[node].ranks;
    for (auto& [node, host] : hosts_) {
      const auto cores = static_cast<std::size_t>(costs_.shared_cores);
      if (host.ranks <= cores) continue;
      host.cores_free_from.assign(cores, 0.0);
      host.speed = static_cast<double>(host.ranks) / static_cast<double>(cores);
    }
  }

  double core_free_from(std::size_t rank) const {
    const auto host = hosts_.find(nodes_[rank]);
    if (host == hosts_.end() || host->second.cores_free_from.empty()) return 0.0;
    return std::ranges::min(host->second.cores_free_from);
  }

  Rank tasks_of(const Schedule& schedule, int number) const {
    Rank rank;
    std::vector<std::size_t> first_segment;
    std::vector<std::int64_t> chunk_bytes;
    for (int chunk = 0; chunk < schedule.chunks; ++chunk) {
      first_segment.push_back(rank.segments.size());
      chunk_bytes.push_back(chunk_range(total_, schedule.chunks, chunk).count);
      const std::int64_t segments = (chunk_bytes.back() + options_.segment_bytes - 1) / options_.segment_bytes;
      rank.segments.resize(rank.segments.size() + static_cast<std::size_t>(segments));
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
            .push_back({s, bytes, sends ? writes : steps, step.action == Action::reduce});
        if (!sends) ++writes;
        ++steps;
      }
    }
    return rank;
  }

  static Channel& channel_of(Rank& rank, int peer) {
    const auto found = std::ranges::find(rank.channels, peer, &Channel::peer);
    if (found != rank.channels.end()) return *found;
    rank.channels.emplace_back().peer = peer;
    return rank.channels.back();
  }

  /// The other end of a channel of `rank`.
  const Channel* opposite(const Channel& channel, std::size_t rank) const {
    const Rank& peer = ranks_[static_cast<std::size_t>(channel.peer)];
    const auto found = std::ranges::find(peer.channels, static_cast<int>(rank), &Channel::peer);
    return found == peer.channels.end() ? nullptr : &*found;
  }

  double send_begins(const Rank& rank, const Channel& channel, const Channel& other) const {
    if (channel.sent.size() == channel.sends.size()) return kNever;
    const Task& task = channel.sends[channel.sent.size()];
    const Segment& segment = rank.segments[task.segment];
    if (segment.writes < task.before) return kNever;
    const auto depth = static_cast<std::size_t>(options_.depth);
    double begin = std::max(rank.free_from, segment.written);
    if (channel.sent.size() >= depth) {
      if (other.received.size() + depth <= channel.sent.size()) return kNever;
      begin = std::max(begin, other.received[channel.sent.size() - depth]);
    }
    return begin;
  }

  static double receive_begins(const Rank& rank, const Channel& channel, const Channel& other) {
    const std::size_t index = channel.received.size();
    if (index == channel.receives.size() || other.sent.size() <= index) return kNever;
    const Task& task = channel.receives[index];
    const Segment& segment = rank.segments[task.segment];
    if (segment.steps < task.before) return kNever;
    return std::max({rank.free_from, segment.stepped, other.sent[index]});
  }

  /// What can begin first; of what can begin at one time, a send, on which another rank waits.
  Next next_of(std::size_t number) const {
    const Rank& rank = ranks_[number];
    Next next;
    for (const bool sends : {true, false}) {
      for (std::size_t i = 0; i < rank.channels.size(); ++i) {
        const Channel& channel = rank.channels[i];
        const Channel* const other = opposite(channel, number);
        if (other == nullptr) continue;
        const double begin = sends ? send_begins(rank, channel, *other) : receive_begins(rank, channel, *other);
        if (begin < next.begin) next = {begin, i, sends};
      }
    }
    return next;
  }

  /// Seconds of a message within data of `total_` bytes: what does not fit into caches takes longer by the byte.
  double message_seconds(std::size_t a, std::size_t b, std::int64_t bytes) const {
    const CostCurve& curve = nodes_[a] == nodes_[b] ? costs_.within_host : costs_.between_hosts;
    const std::int64_t whole = options_.segment_bytes;
    if (total_ <= whole) return curve.at(bytes);
    const double segments = static_cast<double>(total_) / static_cast<double>(whole), one = curve.at(whole);
    return one == 0.0 ? 0.0 : curve.at(bytes) * curve.at(total_) / (segments * one);
  }

  /// Its end.
  double carry_out(std::size_t number, const Next& next, double begin) {
    Rank& rank = ranks_[number];
    Channel& channel = rank.channels[next.channel];
    const Task& task = next.sends ? channel.sends[channel.sent.size()] : channel.receives[channel.received.size()];
    double seconds = message_seconds(number, static_cast<std::size_t>(channel.peer), task.bytes) / 2.0;
    if (task.combines && total_ > 0)
      seconds += costs_.combine.at(total_) * static_cast<double>(task.bytes) / static_cast<double>(total_);
    const auto host = hosts_.find(nodes_[number]);
    const bool shares_cores = host != hosts_.end() && !host->second.cores_free_from.empty();
    const double end = begin + (shares_cores ? seconds / host->second.speed : seconds);
    if (shares_cores) *std::ranges::min_element(host->second.cores_free_from) = end;
    rank.free_from = end;
    (next.sends ? channel.sent : channel.received).push_back(end);
    Segment& segment = rank.segments[task.segment];
    ++segment.steps;
    segment.stepped = end;
    if (!next.sends) {
      ++segment.writes;
      segment.written = end;
    }
    return end;
  }

  std::span<const int> nodes_;
  std::int64_t total_;
  const MessageCosts& costs_;
  const SegmentOptions& options_;
  std::vector<Rank> ranks_;
  std::map<int, Host> hosts_;  // empty where no cores are shared
};

}  // namespace

double predicted_seconds(const Schedule& schedule, std::span<const int> node_of_rank, std::int64_t bytes,
                         const MessageCosts& costs, const SegmentOptions& segments) {
  return Simulation(schedule, node_of_rank, bytes, costs, segments).run();
}

std::vector<AlgorithmChoice> choose_algorithms(std::span<const int> node_of_rank, const MessageCosts& costs,
                                               const SegmentOptions& segments) {
  // Beyond the largest size, costs grow by the byte alike for all of them.
  constexpr std::int64_t kSmallest = 4, kLargest = std::int64_t{1} << 24;
  constexpr double kGain = 0.05;  // for less, no other is taken
  struct Candidate {
    std::string_view name;
    Schedule schedule;
  };
  std::vector<Candidate> candidates;
  for (const AllReduceAlgorithm& algorithm : all_reduce_algorithms())
    candidates.push_back({algorithm.name, algorithm.make(node_of_rank)});
  std::vector<AlgorithmChoice> choices;
  for (std::int64_t bytes = kSmallest; bytes <= kLargest; bytes *= 2) {
    const Candidate* best = nullptr;
    double least = kNever, as_before = kNever;
    for (const Candidate& candidate : candidates) {
      const double seconds = predicted_seconds(candidate.schedule, node_of_rank, bytes, costs, segments);
      if (!choices.empty() && choices.back().algorithm == candidate.name) as_before = seconds;
      if (seconds >= least) continue;
      least = seconds;
      best = &candidate;
    }
    if (choices.empty()) {
      choices.push_back({0, best->name});
    } else if (least < (1.0 - kGain) * as_before) {
      choices.push_back({bytes - bytes / 4, best->name});  // from the middle between two sizes on
    }
  }
  return choices;
}

}  // namespace tandem::comm

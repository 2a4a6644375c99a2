// Rings of neighbours that pass data on, once and several times: the difference is what messages take. Then whole
// all-reduces, beside what that predicts.
#include "tandem/comm/backends/native/measure_costs.h"

#include "tandem/comm/backends/flat_math.h"
#include "tandem/comm/backends/native/collective_plan.h"
#include "tandem/comm/backends/native/schedule_run.h"
#include "tandem/comm/cost/choose_algorithms.h"
#include "tandem/comm/cost/predict.h"
#include "tandem/comm/launch/host_cores.h"
#include "tandem/comm/schedules/schedule_builder.h"
#include "tandem/core/allocator.h"
#include "tandem/core/number_text.h"
#include "tandem/core/storage.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace tandem::comm {

namespace {

using Clock = std::chrono::steady_clock;
using Rings = std::vector<std::vector<int>>;

constexpr std::int64_t kSizes[] = {4,         1 << 10, 4 << 10, 16 << 10, 64 << 10, 128 << 10,
                                   512 << 10, 1 << 20, 2 << 20, 4 << 20,  8 << 20,  32 << 20};
constexpr std::int64_t kMostOnHost = 256 << 20;  // bytes that all its ranks take
constexpr std::int64_t kReducedSizes[] = {1 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20};
constexpr double kLongReduction = 0.05;       // seconds, from which on nothing larger is measured
constexpr int kRounds = 9, kLeastRounds = 3;  // of all-reduces that take turns
constexpr double kLongRounds = 0.5;           // seconds, from which on no more rounds than the least begin
constexpr int kTurns = 5, kManyRounds = 5, kManyMessages = 17;

/// Of each host with several ranks.
Rings rings_within_hosts(std::span<const int> node_of_rank) {
  std::map<int, std::vector<int>> of_node;
  for (std::size_t rank = 0; rank < node_of_rank.size(); ++rank)
    of_node[node_of_rank[rank]].push_back(static_cast<int>(rank));
  Rings rings;
  for (auto& [node, ranks] : of_node)
    if (ranks.size() > 1) rings.push_back(std::move(ranks));
  return rings;
}

/// Of the first ranks of all hosts, of the second ones, and so on.
Rings rings_between_hosts(std::span<const int> node_of_rank) {
  std::map<int, std::size_t> seen;  // ranks of a node
  Rings rings;
  for (std::size_t rank = 0; rank < node_of_rank.size(); ++rank) {
    const std::size_t index = seen[node_of_rank[rank]]++;
    if (rings.size() <= index) rings.resize(index + 1);
    rings[index].push_back(static_cast<int>(rank));
  }
  std::erase_if(rings, [](const std::vector<int>& ring) { return ring.size() < 2; });
  return rings;
}

/// In each round every rank passes `messages` chunks on to its right neighbour: first its own, then those that came
/// last.
std::shared_ptr<const Schedule> passing(const Rings& rings, int ranks, int rounds, int messages = 1) {
  ScheduleBuilder schedule("passing", ranks, ranks * messages);
  for (int round = 0; round < rounds; ++round) {
    for (const std::vector<int>& ring : rings) {
      const std::size_t size = ring.size(), back = static_cast<std::size_t>(round) % size;
      for (std::size_t at = 0; at < size; ++at)
        for (int message = 0; message < messages; ++message)
          schedule.copy(round, ring[at], ring[(at + 1) % size], ring[(at + size - back) % size] * messages + message);
    }
  }
  return std::make_shared<const Schedule>(schedule.take());
}

/// On the host that has the most of them.
std::int64_t ranks_of_a_host(std::span<const int> node_of_rank) {
  std::int64_t most = 1;
  for (const int node : node_of_rank) most = std::max<std::int64_t>(most, std::ranges::count(node_of_rank, node));
  return most;
}

class Measurement {
 public:
  Measurement(Backend& group, Transport& transport, int tag, const SegmentOptions& segments, bool many_ranks,
              std::int64_t most_bytes)
      : group_(group),
        transport_(transport),
        tag_(tag),
        segments_(segments),
        many_ranks_(many_ranks),
        most_bytes_(most_bytes) {}

  /// Points of the curve; and `start` and `overhead` of `costs`.
  std::vector<CostPoint> exchanges(const Rings& rings, MessageCosts& costs) {
    const int ranks = group_.place().size;
    const auto once = passing(rings, ranks, 1), often = passing(rings, ranks, kManyRounds);
    const std::int64_t most_chunks = chunks_of_a_rank(*often);
    std::vector<CostPoint> points;
    for (const std::int64_t bytes : kSizes) {
      if (bytes > most_bytes_) break;
      // Beyond a segment all chunks of a rank together are of that size: it tells which caches they are in.
      const std::int64_t chunk =
          bytes <= segments_.segment_bytes ? bytes : std::max(segments_.segment_bytes, bytes / most_chunks);
      const auto memory = zeros(chunk * most_chunks);
      const double first = seconds_of([&] { pass(once, chunk, *memory); });
      const double all = seconds_of([&] { pass(often, chunk, *memory); });
      // On a busy machine one round may take longer than several; then these tell alone.
      const double one = all > first ? (all - first) / (kManyRounds - 1) : all / kManyRounds;
      if (points.empty()) {
        const auto many = passing(rings, ranks, 1, kManyMessages);
        const auto room = zeros(chunk * chunks_of_a_rank(*many));
        const double several = seconds_of([&] { pass(many, chunk, *room); });
        costs.start = std::max(0.0, first - one);
        costs.overhead = std::clamp((several - first) / (kManyMessages - 1), 0.0, one);
      }
      points.push_back({bytes, one * static_cast<double>(bytes) / static_cast<double>(chunk)});
    }
    return undisturbed(std::move(points));
  }

  std::vector<CostPoint> combinations() {
    std::vector<CostPoint> points;
    for (const std::int64_t bytes : kSizes) {
      if (bytes > most_bytes_) break;
      const std::int64_t segment = std::min(bytes, segments_.segment_bytes);
      const auto into = zeros(bytes), from = zeros(segment);
      const double seconds = seconds_of([&] {
        for (std::int64_t at = 0; at < bytes; at += segment)
          reduce_into(bytes_of(*into) + at, bytes_of(*from), std::min(segment, bytes - at) / 4, DType::f32,
                      ReduceOp::sum);
      });
      points.push_back({bytes, seconds});
    }
    return undisturbed(std::move(points));
  }

  /// By all algorithms that there are to choose from, what whole all-reduces take beside what `costs` predict. They
  /// take turns, so that what disturbs some of them disturbs the others as much.
  std::vector<Correction> corrections(std::span<const int> node_of_rank, const MessageCosts& costs) {
    const std::set<int> hosts(node_of_rank.begin(), node_of_rank.end());
    std::vector<std::shared_ptr<const Schedule>> schedules;
    std::vector<Correction> result;
    for (auto& [name, made] : candidate_algorithms(node_of_rank)) {
      result.push_back({.algorithm = made.name, .ranks = made.ranks, .hosts = static_cast<int>(hosts.size())});
      schedules.push_back(std::make_shared<const Schedule>(std::move(made)));
    }
    std::vector<std::vector<CostPoint>> measured(schedules.size());
    double longest = 0.0;
    for (const std::int64_t bytes : kReducedSizes) {
      if (bytes > most_bytes_ || longest > kLongReduction) break;
      const auto memory = zeros(bytes);
      const std::vector<double> seconds =
          seconds_of_each(schedules.size(), [&](std::size_t which) { all_reduce(schedules[which], bytes, *memory); });
      for (std::size_t i = 0; i < schedules.size(); ++i) {
        longest = std::max(longest, seconds[i]);
        measured[i].push_back({bytes, seconds[i]});
      }
    }
    for (std::size_t i = 0; i < schedules.size(); ++i)
      for (const auto& [bytes, seconds] : undisturbed(std::move(measured[i]))) {
        const double predicted = predicted_seconds(*schedules[i], node_of_rank, bytes, costs, segments_);
        if (predicted > 0.0) result[i].points.push_back({bytes, std::clamp(seconds / predicted, 1e-3, 1e3)});
      }
    return result;
  }

 private:
  /// What took longer than more of it was disturbed: it takes as long as that.
  static std::vector<CostPoint> undisturbed(std::vector<CostPoint> points) {
    for (std::size_t i = points.size() - 1; i-- > 0;)
      points[i].seconds = std::min(points[i].seconds, points[i + 1].seconds);
    return points;
  }

  /// The most of any rank: all ranks must have chunks of one size.
  static std::int64_t chunks_of_a_rank(const Schedule& schedule) {
    std::size_t most = 1;
    for (const std::vector<Step>& steps : schedule.of_rank) {
      std::set<int> chunks;
      for (const Step& step : steps) chunks.insert(step.chunk);
      most = std::max(most, chunks.size());
    }
    return static_cast<std::int64_t>(most);
  }

  static std::byte* bytes_of(const Storage& storage) { return static_cast<std::byte*>(storage.data()); }

  /// As tensors of that size are: large ones are on pages of another size.
  static std::unique_ptr<Storage> zeros(std::int64_t bytes) {
    auto storage = std::make_unique<Storage>(bytes, Device{}, MemoryTag::comm);
    std::fill_n(bytes_of(*storage), bytes, std::byte{0});
    return storage;
  }

  /// `memory` has room for the chunks of `bytes` bytes that this rank has to do with.
  void pass(const std::shared_ptr<const Schedule>& schedule, std::int64_t bytes, const Storage& memory) {
    const int rank = group_.place().rank;
    std::vector<ChunkMemory> chunks(static_cast<std::size_t>(schedule->chunks), ChunkMemory{nullptr, bytes});
    std::byte* next = bytes_of(memory);
    for (const Step& step : schedule->of_rank[static_cast<std::size_t>(rank)]) {
      ChunkMemory& chunk = chunks[static_cast<std::size_t>(step.chunk)];
      if (chunk.data != nullptr) continue;
      chunk.data = next;
      next += bytes;
    }
    carry_out(schedule, chunks, {DType::u8, ReduceOp::sum});
  }

  /// Sums of f32 in place, cut as those of tensors are.
  void all_reduce(const std::shared_ptr<const Schedule>& schedule, std::int64_t bytes, const Storage& memory) {
    const CollectivePlan plan = Schedules(schedule->ranks, group_.place().rank, {{0, schedule}})
                                    .plan({.kind = CollectiveKind::all_reduce,
                                           .dtype = DType::f32,
                                           .counts = {bytes / size_of(DType::f32)},
                                           .input = memory.data(),
                                           .output = memory.data()});
    carry_out(plan.schedule, plan.chunks, plan.elements);
  }

  void carry_out(const std::shared_ptr<const Schedule>& schedule, const std::vector<ChunkMemory>& chunks,
                 const Elements& elements) {
    ScheduleRun run(transport_, schedule, group_.place().rank, tag_, chunks, elements, segments_);
    Patience patience(many_ranks_);
    for (std::size_t before = 0; !run.poll(); before = run.messages()) {
      patience.pause(run.messages() != before);
      transport_.check();
    }
  }

  /// The median of several turns of some milliseconds, on the slowest rank.
  template <typename Body>
  double seconds_of(const Body& body) {
    turn(body, 1);  // warm-up
    std::vector<double> turns{turn(body, 1)};
    const std::int64_t repeats = repeats_of(turns.front());
    if (repeats > 1) turns.clear();
    while (turns.size() < kTurns) turns.push_back(turn(body, repeats));
    return median(turns);
  }

  /// The same of `count` bodies, body(0) and so on, one turn of each after another.
  template <typename Body>
  std::vector<double> seconds_of_each(std::size_t count, const Body& body) {
    std::vector<std::int64_t> repeats(count);
    for (std::size_t i = 0; i < count; ++i) {
      turn([&] { body(i); }, 1);  // warm-up
      repeats[i] = repeats_of(turn([&] { body(i); }, 1));
    }
    std::vector<std::vector<double>> turns(count);
    double elapsed = 0.0;  // the same on all ranks, as turns are
    for (int round = 0; round < kRounds && (round < kLeastRounds || elapsed < kLongRounds); ++round)
      for (std::size_t i = 0; i < count; ++i) {
        turns[i].push_back(turn([&] { body(i); }, repeats[i]));
        elapsed += turns[i].back() * static_cast<double>(repeats[i]);
      }
    std::vector<double> medians;
    for (std::vector<double>& each : turns) medians.push_back(median(each));
    return medians;
  }

  static std::int64_t repeats_of(double seconds) {
    constexpr double kTurnSeconds = 2e-3;
    return std::clamp<std::int64_t>(static_cast<std::int64_t>(kTurnSeconds / std::max(seconds, 1e-7)), 1, 200);
  }

  static double median(std::vector<double>& values) {
    std::ranges::sort(values);
    return values[values.size() / 2];
  }

  /// Seconds of one of `repeats`; on all ranks the same.
  template <typename Body>
  double turn(const Body& body, std::int64_t repeats) {
    group_.run({.kind = CollectiveKind::barrier});
    const auto begin = Clock::now();
    for (std::int64_t i = 0; i < repeats; ++i) body();
    const std::chrono::duration<double> elapsed = Clock::now() - begin;
    return slowest(elapsed.count()) / static_cast<double>(repeats);
  }

  double slowest(double mine) {
    double most = 0.0;
    for (const std::string& text : group_.all_gather_bytes(std::to_string(static_cast<std::int64_t>(mine * 1e9))))
      most = std::max(most, static_cast<double>(parse_number<std::int64_t>(text).value_or(0)) * 1e-9);
    return most;
  }

  Backend& group_;
  Transport& transport_;
  int tag_;
  SegmentOptions segments_;
  bool many_ranks_;
  std::int64_t most_bytes_;
};

}  // namespace

MessageCosts measure_message_costs(Backend& group, Transport& transport, int tag, std::span<const int> node_of_rank,
                                   const SegmentOptions& segments) {
  MessageCosts costs = usual_message_costs();
  costs.shared_cores = shared_cores(
      cores_by_host(group.all_gather_bytes(place_text(node_of_rank[static_cast<std::size_t>(group.place().rank)]))));
  // On a simulated network a host's ranks may be on other hosts, which have its cores as well.
  const bool many_ranks = shared_cores(cores_by_host(group.all_gather_bytes(place_text(group.place().node)))) > 0;
  Measurement measurement(group, transport, tag, segments, many_ranks, kMostOnHost / ranks_of_a_host(node_of_rank));
  if (const Rings rings = rings_between_hosts(node_of_rank); !rings.empty())
    costs.between_hosts = CostCurve(measurement.exchanges(rings, costs));
  if (const Rings rings = rings_within_hosts(node_of_rank); !rings.empty())
    costs.within_host = CostCurve(measurement.exchanges(rings, costs));
  costs.combine = CostCurve(measurement.combinations());
  // Ranks that share cores take another time whenever these change hands: corrections of one second made predictions of
  // the next ones worse.
  if (!many_ranks) costs.corrections = measurement.corrections(node_of_rank, costs);
  allocator_for(Device{}).release_cached();
  return message_costs_from_text(group.all_gather_bytes(to_text(costs)).front());  // others may round otherwise
}

}  // namespace tandem::comm

// Groups of runs: on the CPU by its clock, on GPUs by events around graphs.
#include "apps/conv_bench/timing.h"

#include "tandem/core/error.h"
#include "tandem/core/out.h"
#include "tandem/core/parallel.h"
#include "tandem/core/stream.h"
#include "tandem/core/work_graph.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>
#include <utility>

namespace tandem::conv_bench {

namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr std::int64_t kFlushFloats = std::int64_t{32} << 20;  // 128 MiB: more than caches hold
constexpr double kLeastOnGpu = 10, kMostOnGpu = 50;            // runs in a group
constexpr int kMostCold = 10;                                  // each waits for a flush

double seconds_since(SteadyClock::time_point start) {
  return std::chrono::duration<double>(SteadyClock::now() - start).count();
}

/// Fills the caches with something else: every thread writes its part of a large buffer, or the GPU all of it.
class Flush {
 public:
  explicit Flush(Device device) : buffer_(Tensor::zeros({kFlushFloats}, {.device = device})) {}

  void operator()() {
    if (buffer_.device().type == DeviceType::cuda) return buffer_.fill(1.0);
    float* const data = Out(buffer_).data<float>();
    parallel_for(kFlushFloats, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) data[i] += 1.0F;
    });
  }

 private:
  Tensor buffer_;
};

/// One per device: it is large.
Flush& flush_of(Device device) {
  static std::vector<std::pair<Device, Flush>> all;
  for (auto& [known, flush] : all)
    if (known == device) return flush;
  return all.emplace_back(device, Flush(device)).second;
}

}  // namespace

std::string_view name_of(Cache cache) { return cache == Cache::hot ? "hot" : "cold"; }

Cache parse_cache(std::string_view text) {
  if (text == "hot") return Cache::hot;
  require(text == "cold", "--cache '{}': choose from hot and cold", text);
  return Cache::cold;
}

struct GroupTimer::Groups {
  Device device;
  std::function<void()> work;
  Cache cache;
  int launches = 1;
  std::optional<WorkGraph> graph, flushes;  // a whole group, and what of it is not counted

  double on_cpu() {
    double counted = 0.0;
    for (int i = 0; i < launches; ++i) {
      if (cache == Cache::cold) flush_of(device)();
      const SteadyClock::time_point start = SteadyClock::now();
      work();
      counted += seconds_since(start);
    }
    return counted / launches;
  }

  /// Seconds of device time between an event before `enqueue` and one behind.
  double between_events(const std::function<void()>& enqueue) {
    Event start(EventTiming::on), end(EventTiming::on);
    const Stream stream = current_stream(device);
    start.record(stream);
    enqueue();
    end.record(stream);
    end.synchronize();
    return 1e-3 * end.elapsed_ms(start);
  }

  void enqueue_group(bool with_work) {
    for (int i = 0; i < launches; ++i) {
      if (cache == Cache::cold) flush_of(device)();
      if (with_work) work();
    }
  }

  double on_gpu() {
    const auto group = [this](std::optional<WorkGraph>& recorded, bool with_work) {
      return between_events([&] { recorded ? recorded->launch() : enqueue_group(with_work); });
    };
    double seconds = group(graph, true);
    if (cache == Cache::cold) seconds = std::max(0.0, seconds - group(flushes, false));
    return seconds / launches;
  }
};

GroupTimer::GroupTimer(Device device, std::function<void()> work, bool can_be_recorded, Cache cache,
                       const Protocol& protocol)
    : groups_(std::make_unique<Groups>(Groups{device, std::move(work), cache, 1, {}, {}})) {
  Groups& groups = *groups_;
  double quickest = 1e9;
  for (int i = 0; i < std::max(protocol.warmup, 1); ++i) {
    const SteadyClock::time_point start = SteadyClock::now();
    groups.work();
    synchronize(device);
    quickest = std::min(quickest, seconds_since(start));
  }
  const bool on_cpu = device.type == DeviceType::cpu;
  if (protocol.launches > 0) {
    groups.launches = protocol.launches;
  } else {
    const double fitting = std::ceil(protocol.group_seconds / quickest);
    groups.launches =
        static_cast<int>(on_cpu ? std::clamp(fitting, 1.0, 1000.0) : std::clamp(fitting, kLeastOnGpu, kMostOnGpu));
    if (cache == Cache::cold) groups.launches = std::min(groups.launches, kMostCold);
  }
  if (cache == Cache::cold) flush_of(device)();
  if (!can_be_recorded || !WorkGraph::can_record(device)) return;
  groups.graph.emplace(device, [&] { groups.enqueue_group(true); });
  if (cache == Cache::cold) groups.flushes.emplace(device, [&] { groups.enqueue_group(false); });
  groups.on_gpu();  // the first launch of a graph takes it to the device
}

GroupTimer::~GroupTimer() = default;
GroupTimer::GroupTimer(GroupTimer&&) noexcept = default;

double GroupTimer::run_group() {
  return groups_->device.type == DeviceType::cpu ? groups_->on_cpu() : groups_->on_gpu();
}

int GroupTimer::launches() const { return groups_->launches; }
bool GroupTimer::is_recorded() const { return groups_->graph.has_value(); }

std::vector<std::vector<double>> time_interleaved(std::vector<GroupTimer>& timers, int groups) {
  std::vector<std::vector<double>> seconds(timers.size());
  for (std::size_t group = 0; group < static_cast<std::size_t>(groups); ++group) {
    for (std::size_t turn = 0; turn < timers.size(); ++turn) {
      const std::size_t who = (group + turn) % timers.size();
      seconds[who].push_back(timers[who].run_group());
    }
  }
  return seconds;
}

}  // namespace tandem::conv_bench

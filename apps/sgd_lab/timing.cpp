#include "apps/sgd_lab/timing.h"

#include "apps/measure/quantile.h"
#include "tandem/autograd/functions.h"
#include "tandem/autograd/variable.h"
#include "tandem/comm/backends/threads/thread_ranks.h"
#include "tandem/comm/ddp/distributed_data_parallel.h"
#include "tandem/core/profiler.h"
#include "tandem/core/timeline.h"
#include "tandem/data/synthetic.h"
#include "tandem/layers/layers.h"
#include "tandem/optim/sgd.h"
#include "tandem/train/profile/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <thread>

namespace tandem::sgd_lab {

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::int64_t kSide = 12, kWidth = 256, kLayers = 9, kBatch = 512;
constexpr int kFirstTurns = 2, kLeastTurns = 5, kMostTurns = 25, kPictured = 3;
constexpr double kMostSeconds = 2.0;  // of all turns, if they are not too few

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

/// A network whose gradients are exchanged in one way. Its weights stay what they are: the learning rate is 0.
class Trainee {
 public:
  Trainee(comm::ProcessGroup& group, std::int64_t bucket_bytes)
      : initializer_(1),
        network_(make_network(initializer_)),
        replicas_(group, network_->named_parameters(), {},
                  {.first_bucket_bytes = bucket_bytes, .bucket_bytes = bucket_bytes}),
        optimizer_(network_->parameters(), {.lr = 0.0}) {}

  void step(const std::vector<Tensor>& batch, bool exchanges) {
    optimizer_.zero_grad();
    Tensor loss;
    {
      const ProfileRange range("forward");
      loss = autograd::softmax_cross_entropy((*network_)(batch[0]), batch[1]);
    }
    if (!exchanges) {
      const auto no_sync = replicas_.no_sync();
      autograd::backward(loss);
    } else {
      {
        const ProfileRange range("backward");
        autograd::backward(loss);
      }
      const ProfileRange range("communication");
      replicas_.finish();
    }
    const ProfileRange range("optimizer");
    optimizer_.step();
  }

  comm::DistributedDataParallel& replicas() { return replicas_; }
  std::int64_t weights() const {
    std::int64_t count = 0;
    for (const Tensor& parameter : network_->parameters()) count += parameter.numel();
    return count;
  }

 private:
  static std::unique_ptr<layers::Sequential> make_network(layers::Initializer& initializer) {
    auto network = std::make_unique<layers::Sequential>();
    network->add<layers::Flatten>();
    network->add<layers::Linear>({.in = kSide * kSide, .out = kWidth, .relu = true}, initializer);
    for (std::int64_t layer = 2; layer < kLayers; ++layer)
      network->add<layers::Linear>({.in = kWidth, .out = kWidth, .relu = true}, initializer);
    network->add<layers::Linear>({.in = kWidth, .out = 10}, initializer);
    return network;
  }

  layers::Initializer initializer_;
  std::unique_ptr<layers::Sequential> network_;
  comm::DistributedDataParallel replicas_;
  optim::SGD optimizer_;
};

/// Of one rank and way, by step.
struct Samples {
  std::vector<double> step, window, exchange, waited;

  void add(double seconds, const comm::ExchangeTotals& totals) {
    step.push_back(seconds);
    window.push_back(totals.seconds - totals.waited_seconds);
    exchange.push_back(totals.seconds);
    waited.push_back(totals.waited_seconds);
  }
};

/// What a rank has measured.
struct RankSamples {
  std::vector<double> compute;
  Samples behind, beside;
};

double median_of(const std::vector<RankSamples>& ranks, const auto& values_of) {
  std::vector<double> all;
  for (const RankSamples& rank : ranks) {
    const std::vector<double>& values = values_of(rank);
    all.insert(all.end(), values.begin(), values.end());
  }
  return apps::median(std::move(all));
}

void add_medians(ExchangeWay& way, const std::vector<RankSamples>& ranks, Samples RankSamples::* samples) {
  const auto median = [&](std::vector<double> Samples::* values) {
    return median_of(ranks, [&](const RankSamples& rank) -> auto& { return (rank.*samples).*values; });
  };
  way.step = median(&Samples::step);
  way.window = median(&Samples::window);
  way.exchange = median(&Samples::exchange);
  way.waited = median(&Samples::waited);
}

/// What the ranks of one process have in common.
struct Shared {
  std::atomic<bool> is_last = false;
  Clock::time_point begin = Clock::now();
};

class RankTimer {
 public:
  RankTimer(comm::ProcessGroup& group, Shared& shared)
      : group_(group),
        shared_(shared),
        behind_(group, std::int64_t{1} << 30),
        beside_(group, 2 * kWidth * kWidth * static_cast<std::int64_t>(sizeof(float))) {
    const data::ImageDataset images = data::make_synthetic(
        {.count = kBatch, .channels = 1, .side = kSide, .seed = static_cast<std::uint64_t>(group.rank())});
    std::vector<std::int64_t> all(kBatch);
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::int64_t>(i);
    batch_ = images.get_batch(all, 0, {});
  }

  RankSamples measure() {
    RankSamples samples;
    for (int turn = 0; turn < kFirstTurns; ++turn) take_turn(nullptr);
    if (group_.rank() == 0) shared_.begin = Clock::now();
    for (int turn = 1;; ++turn) {
      if (group_.rank() == 0)
        shared_.is_last = turn == kMostTurns || (turn >= kLeastTurns && seconds_since(shared_.begin) > kMostSeconds);
      group_.barrier();  // rank 0 writes again only behind the barriers of this turn
      const bool is_last = shared_.is_last;
      take_turn(&samples);
      if (is_last) return samples;
    }
  }

  /// Of a few more steps the one that took the median time; on rank 0.
  train::report::StepTrace picture(Trainee& trainee) {
    const TimelineOfThread own;
    start_timeline();
    for (int step = 0; step < kPictured; ++step) {
      group_.barrier();
      const ProfileRange range([&] { return fmt::format("step {}", step); });
      trainee.step(batch_, true);
    }
    const std::string trace = train::trace_of(stop_timeline(), group_);
    trainee.replicas().take_totals();
    return group_.rank() == 0 ? train::report::read_step(trace).value_or(train::report::StepTrace{})
                              : train::report::StepTrace{};
  }

  Trainee& behind() { return behind_; }
  Trainee& beside() { return beside_; }

 private:
  /// All ranks begin at once.
  double step_seconds(Trainee& trainee, bool exchanges) {
    group_.barrier();
    const Clock::time_point begin = Clock::now();
    trainee.step(batch_, exchanges);
    return seconds_since(begin);
  }

  void take_turn(RankSamples* samples) {
    const double alone = step_seconds(beside_, false), behind = step_seconds(behind_, true),
                 beside = step_seconds(beside_, true);
    const comm::ExchangeTotals of_behind = behind_.replicas().take_totals(),
                               of_beside = beside_.replicas().take_totals();
    if (samples == nullptr) return;
    samples->compute.push_back(alone);
    samples->behind.add(behind, of_behind);
    samples->beside.add(beside, of_beside);
  }

  comm::ProcessGroup& group_;
  Shared& shared_;
  Trainee behind_, beside_;
  std::vector<Tensor> batch_;
};

}  // namespace

int most_timed_ranks() { return std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 2, 8); }

TimedSteps time_steps(int ranks, std::string_view network) {
  TimedSteps result;
  result.ranks = ranks;
  result.network = network;
  result.batch = kBatch;
  result.layers = kLayers;
  std::vector<RankSamples> samples(static_cast<std::size_t>(ranks));
  Shared shared;
  comm::run_thread_ranks(ranks, comm::native_options("threads", "by-cost", network), [&](comm::ProcessGroup& group) {
    RankTimer timer(group, shared);
    samples[static_cast<std::size_t>(group.rank())] = timer.measure();
    const auto behind = timer.picture(timer.behind()), beside = timer.picture(timer.beside());
    if (group.rank() != 0) return;
    result.weights = timer.behind().weights();
    result.behind.bucket_bytes = timer.behind().replicas().bucket_sizes();
    result.behind.picture = behind;
    result.beside.bucket_bytes = timer.beside().replicas().bucket_sizes();
    result.beside.picture = beside;
  });
  result.turns = static_cast<int>(samples[0].compute.size());
  result.compute = median_of(samples, [](const RankSamples& rank) -> auto& { return rank.compute; });
  add_medians(result.behind, samples, &RankSamples::behind);
  add_medians(result.beside, samples, &RankSamples::beside);
  return result;
}

}  // namespace tandem::sgd_lab

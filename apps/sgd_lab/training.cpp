#include "apps/sgd_lab/training.h"

#include "tandem/autograd/functions.h"
#include "tandem/autograd/grad_mode.h"
#include "tandem/autograd/variable.h"
#include "tandem/comm/backends/threads/thread_ranks.h"
#include "tandem/data/sampler.h"
#include "tandem/data/synthetic.h"
#include "tandem/layers/layers.h"
#include "tandem/optim/sgd.h"

#include <chrono>
#include <numeric>

namespace tandem::sgd_lab {

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::int64_t kSide = 12, kHidden = 64, kTrainingExamples = 9600, kHeldOutExamples = 200;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

class Replica {
 public:
  Replica(const Examples& examples, std::uint64_t seed) : examples_(examples), initializer_(seed) {
    network_.add<layers::Flatten>();
    network_.add<layers::Linear>({.in = kSide * kSide, .out = kHidden, .relu = true}, initializer_);
    network_.add<layers::Linear>({.in = kHidden, .out = examples.training.classes()}, initializer_);
  }

  std::vector<Tensor> parameters() const { return network_.parameters(); }

  Flat weights() const { return flat(parameters()); }

  void set_weights(const Flat& values) {
    const autograd::NoGrad no_grad;
    for_each(values, [](const Tensor& weight, const Tensor& value) { weight.copy_from(value); });
  }

  void compute_gradient(const std::vector<std::int64_t>& batch) {
    for (const Tensor& weight : parameters()) autograd::clear_grad(weight);
    autograd::backward(loss(examples_.training, batch));
  }

  Flat gradient() const {
    std::vector<Tensor> gradients;
    for (const Tensor& weight : parameters()) gradients.push_back(autograd::grad(weight));
    return flat(gradients);
  }

  void set_gradient(const Flat& values) { for_each(values, autograd::set_grad); }

  double held_out_loss() {
    const autograd::NoGrad no_grad;
    std::vector<std::int64_t> all(static_cast<std::size_t>(examples_.held_out.size()));
    std::iota(all.begin(), all.end(), 0);
    return loss(examples_.held_out, all).item();
  }

 private:
  static Flat flat(const std::vector<Tensor>& tensors) {
    Flat values;
    for (const Tensor& tensor : tensors) {
      const Flat part = tensor.to_vector<float>();
      values.insert(values.end(), part.begin(), part.end());
    }
    return values;
  }

  template <typename Body>
  void for_each(const Flat& values, const Body& body) {
    const float* next = values.data();
    for (const Tensor& weight : parameters()) {
      const auto count = static_cast<std::size_t>(weight.numel());
      body(weight, Tensor::from(std::span<const float>(next, count), weight.shape()));
      next += count;
    }
  }

  Tensor loss(const data::ImageDataset& dataset, const std::vector<std::int64_t>& batch) {
    const std::vector<Tensor> tensors = dataset.get_batch(batch, 0, {});
    return autograd::softmax_cross_entropy(network_(tensors[0]), tensors[1]);
  }

  const Examples& examples_;
  layers::Initializer initializer_;
  layers::Sequential network_;
};

/// Averages a gradient over ranks in two buckets of one size.
Flat averaged(comm::ProcessGroup& group, const Flat& gradient, bool is_reversed) {
  const std::size_t half = (gradient.size() + 1) / 2;
  Flat result = gradient;
  result.resize(2 * half);
  for (const std::size_t turn : {0, 1}) {
    const std::span<float> bucket(result.data() + (is_reversed ? 1 - turn : turn) * half, half);
    const Tensor tensor = Tensor::from(std::span<const float>(bucket), {static_cast<std::int64_t>(half)});
    group.all_reduce(Out(tensor), comm::ReduceOp::average);
    std::ranges::copy(tensor.to_vector<float>(), bucket.begin());
  }
  result.resize(gradient.size());
  return result;
}

/// A rank's examples in batches of kBatchPerRank, epoch by epoch. An epoch's last batch is left out unless it is full.
class Batches {
 public:
  explicit Batches(const data::DistributedSampler& sampler)
      : sampler_(sampler),
        global_batch_(kBatchPerRank * sampler.world_size()),
        in_epoch_(sampler.batches(global_batch_, true)) {}

  /// The next `count` in one.
  std::vector<std::int64_t> next(int count) {
    std::vector<std::int64_t> joined;
    for (const std::int64_t end = taken_ + count; taken_ < end; ++taken_) {
      if (taken_ % in_epoch_ == 0) order_ = sampler_.order(static_cast<std::uint32_t>(taken_ / in_epoch_));
      const data::BatchPart part = sampler_.part(taken_ % in_epoch_, global_batch_);
      joined.insert(joined.end(), order_.begin() + part.begin, order_.begin() + part.begin + part.count);
    }
    return joined;
  }

 private:
  const data::DistributedSampler& sampler_;
  std::int64_t global_batch_, in_epoch_, taken_ = 0;
  std::vector<std::int64_t> order_;  ///< of the epoch
};

void train(comm::ProcessGroup& group, const TrainingPlan& plan, const Examples& examples, RankRecord& record) {
  const int rank = group.rank();
  const std::optional<Part> without = plan.without;
  const int share = without == Part::sampler ? 0 : rank;
  const data::DistributedSampler sampler(examples.training.size(), group.size(), share, true, plan.seed);
  Batches batches(sampler);
  Replica replica(examples, plan.seed + static_cast<std::uint64_t>(rank));
  optim::SGD optimizer(replica.parameters(), {.lr = plan.learning_rate, .momentum = kMomentum});
  record.drawn = replica.weights();
  if (without != Part::sync_init) {
    const Tensor weights = Tensor::from(record.drawn, {static_cast<std::int64_t>(record.drawn.size())});
    group.broadcast(Out(weights), 0);
    replica.set_weights(weights.to_vector<float>());
  }
  const auto note = [&] {
    if (plan.keeps_weights) record.weights.push_back(replica.weights());
    record.losses.push_back(replica.held_out_loss());
  };
  note();
  for (int step = 0; step < plan.steps; ++step) {
    record.batches.push_back(batches.next(plan.batch_factor));
    const Clock::time_point begin = Clock::now();
    replica.compute_gradient(record.batches.back());
    const Flat own = replica.gradient();
    double computed = seconds_since(begin);
    const Clock::time_point computed_at = Clock::now();
    const bool is_reversed = without == Part::order && rank % 2 == 1;
    const Flat gradient = without == Part::sync_grad ? own : averaged(group, own, is_reversed);
    record.exchange_seconds.push_back(seconds_since(computed_at));
    const Clock::time_point exchanged_at = Clock::now();
    replica.set_gradient(gradient);
    optimizer.step();
    computed += seconds_since(exchanged_at);
    record.compute_seconds.push_back(computed);
    if (step == 0) record.own_gradient = own;
    if (step == 0) record.gradient = gradient;
    note();
  }
}

}  // namespace

Examples make_examples(std::uint64_t seed) {
  return {data::make_synthetic({.count = kTrainingExamples, .channels = 1, .side = kSide, .seed = seed}),
          data::make_synthetic(
              {.count = kHeldOutExamples, .channels = 1, .side = kSide, .seed = seed, .split = data::Split::test})};
}

TrainingPlan plan_of(const LabOptions& options, std::optional<Part> without) {
  return {.ranks = options.ranks, .steps = options.steps, .seed = options.seed, .without = without};
}

Run train_replicas(const TrainingPlan& plan, const Examples& examples) {
  Run run(static_cast<std::size_t>(plan.ranks));
  comm::run_thread_ranks(plan.ranks, [&](comm::ProcessGroup& group) {
    train(group, plan, examples, run[static_cast<std::size_t>(group.rank())]);
  });
  return run;
}

Flat single_process_gradient(const Flat& weights, const Examples& examples, const std::vector<std::int64_t>& batch) {
  Replica replica(examples, 0);
  replica.set_weights(weights);
  replica.compute_gradient(batch);
  return replica.gradient();
}

}  // namespace tandem::sgd_lab

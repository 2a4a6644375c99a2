// Hooks, buckets and their order; start-up and consistency of replicas.
#include "tandem/comm/ddp/distributed_data_parallel.h"

#include "tandem/autograd/grad_mode.h"
#include "tandem/autograd/variable.h"
#include "tandem/comm/agreement.h"
#include "tandem/comm/backends/flat_math.h"
#include "tandem/comm/ddp/hash.h"
#include "tandem/comm/ddp/steps_under_way.h"
#include "tandem/core/profiler.h"
#include "tandem/core/work_graph.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <numeric>
#include <utility>

namespace tandem::comm {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_between(Clock::time_point begin, Clock::time_point end) {
  return std::chrono::duration<double>(end - begin).count();
}

std::string_view kind_of(Device device) { return device.type == DeviceType::cpu ? "a CPU" : "a GPU"; }

/// "name=f32[64, 3, 3, 3] on a CPU ..." per tensor: what must agree before elements can be exchanged.
std::string table_of(const NamedTensors& parameters, const NamedTensors& buffers) {
  std::string table;
  for (const auto& [name, tensor] : parameters) {
    const bool trained = autograd::requires_grad(tensor);
    table += fmt::format("{}={} on {} strides {}{}\n", name, describe(tensor), kind_of(tensor.device()),
                         to_string(tensor.strides()), trained ? "" : " without gradient");
  }
  for (const auto& [name, tensor] : buffers) {
    table += fmt::format("{}={} on {} strides {}\n", name, describe(tensor), kind_of(tensor.device()),
                         to_string(tensor.strides()));
  }
  return table;
}

void broadcast_in_place(ProcessGroup& group, const Tensor& tensor) {
  const autograd::NoGrad no_grad;
  if (tensor.is_dense()) return group.broadcast(Out(tensor));
  const Tensor dense = tensor.contiguous();
  group.broadcast(Out(dense));
  tensor.copy_from(dense);
}

bool contains(const std::vector<Tensor>& tensors, const Tensor& tensor) {
  return std::any_of(tensors.begin(), tensors.end(), [&](const Tensor& other) { return other.is_same(tensor); });
}

}  // namespace

struct DistributedDataParallel::State {
  explicit State(ProcessGroup& process_group) : group(process_group) {}

  ProcessGroup& group;
  std::vector<Tensor> trained;
  std::vector<std::string> names;  // of `trained`
  std::vector<GradientBucket> buckets;
  BucketPlan plan;
  struct Place {
    std::size_t bucket, index;
  };
  std::vector<Place> places;                              // of the gradients of `trained`
  std::vector<std::int64_t> arrived;                      // of this step, while the order is unknown
  std::vector<std::int64_t> order;                        // that of the plan, once it is known
  std::int64_t bucket_bytes = 0, first_bucket_bytes = 0;  // of full ones
  std::size_t launched = 0;                               // buckets [0, launched) are under way
  HalfExchange half = HalfExchange::as_half;
  double weight = 1.0;
  bool synchronising = true;
  bool started = false;              // a gradient of this step is in a bucket
  std::size_t first_bucket_has = 0;  // on one rank: gradients of this step that would be in it
  Clock::time_point first_launch;
  ExchangeTotals totals;
  StepsUnderWay under_way;

  /// On one rank: gradients that the first bucket would get.
  std::size_t first_bucket_gets() const {
    return static_cast<std::size_t>(std::ranges::count_if(
        plan.front(), [&](std::size_t parameter) { return autograd::requires_grad(trained[parameter]); }));
  }

  /// On one rank: of a gradient that would be in the first bucket.
  void count_in_first_bucket() {
    if (synchronising && ++first_bucket_has == first_bucket_gets()) first_launch = Clock::now();
  }

  void finish_alone() {
    if (!plan.empty() && first_bucket_has > 0 && first_bucket_has >= first_bucket_gets())
      totals.window_seconds += seconds_between(first_launch, Clock::now());
    first_bucket_has = 0;
  }

  /// Of a gradient that is final: lets it be the bucket's memory, and starts the exchange of what is full.
  Tensor put_into_bucket(std::size_t parameter, const Tensor& gradient) {
    const auto [bucket, index] = places[parameter];
    require(!buckets[bucket].has(index),
            "DistributedDataParallel: parameter '{}' got a second gradient before finish(); wrap all but the last "
            "backward of a step in no_sync(), and where an error ended a step, make a new object",
            names[parameter]);
    if (!synchronising) return gradient;
    require(
        !buckets[bucket].is_replaced(index),
        "DistributedDataParallel: the gradient of parameter '{}' has another place now: use one object of this kind "
        "at a time for a parameter, and no set_gradient_place()",
        names[parameter]);
    started = true;
    if (order.empty()) arrived.push_back(static_cast<std::int64_t>(parameter));
    Tensor view = buckets[bucket].put(index, gradient, weight);
    launch_full();
    for (std::size_t i = 0; i < launched; ++i) buckets[i].poll();
    return view;
  }

  /// Collective.
  void choose_bucket_bytes(const DistributedOptions& options) {
    std::int64_t total = 0;
    for (const Tensor& tensor : trained)
      total += tensor.numel() * size_of(exchange_dtype(tensor.dtype(), options.half));
    const Device device = trained.empty() ? Device{} : trained.front().device();
    const double latency = latency_bytes(group, device);  // also where some ranks are given a size and others not
    bucket_bytes = options.bucket_bytes.value_or(default_bucket_bytes(total, latency));
    first_bucket_bytes = options.first_bucket_bytes.value_or(std::min(bucket_bytes, std::int64_t{1} << 20));
  }

  /// A later object serves a parameter: it is not to be taken from it.
  bool has_lost_a_place() const {
    return std::ranges::any_of(buckets, [](const GradientBucket& bucket) {
      for (std::size_t i = 0; i < bucket.size(); ++i)
        if (bucket.is_replaced(i)) return true;
      return false;
    });
  }

  /// Of the plan, in place of those before. Collective.
  void make_buckets() {
    buckets.clear();
    places.resize(trained.size());
    for (std::size_t bucket = 0; bucket < plan.size(); ++bucket) {
      std::vector<Tensor> members;
      for (const std::size_t parameter : plan[bucket]) {
        places[parameter] = {bucket, members.size()};
        members.push_back(trained[parameter]);
      }
      buckets.emplace_back(std::move(members), half, &group);
    }
  }

  /// An empty one: that of the start, until a step has told it. Collective.
  void take_order(std::vector<std::int64_t> known) {
    order = std::move(known);
    arrived.clear();
    const std::vector<std::size_t> indices(order.begin(), order.end());
    BucketPlan next = order.empty() ? plan_buckets(trained, first_bucket_bytes, bucket_bytes, half)
                                    : plan_buckets(trained, indices, first_bucket_bytes, bucket_bytes, half);
    if (next == plan || has_lost_a_place()) return;
    plan = std::move(next);
    make_buckets();
  }

  /// Rank 0's order holds for all. Nothing is known yet where it had no gradient in this step.
  void learn_order() {
    const std::string_view mine(reinterpret_cast<const char*>(arrived.data()), arrived.size() * sizeof(std::int64_t));
    const std::string bytes = group.all_gather_bytes(group.rank() == 0 ? mine : "").front();
    arrived.clear();
    if (bytes.empty()) return;
    std::vector<std::int64_t> known(bytes.size() / sizeof(std::int64_t));
    std::memcpy(known.data(), bytes.data(), bytes.size());
    // Those without a gradient come last.
    for (std::int64_t i = std::ssize(trained); i-- > 0;)
      if (std::ranges::find(known, i) == known.end()) known.push_back(i);
    take_order(std::move(known));
  }

  /// Parameters that were frozen since they were given want no gradient any more, and the bucket need not wait for
  /// theirs.
  bool is_full(GradientBucket& bucket) const {
    for (std::size_t i = 0; i < bucket.size(); ++i) {
      const Tensor& parameter = bucket.parameter(i);
      if (!bucket.has(i) && !autograd::requires_grad(parameter) && !autograd::grad(parameter).defined())
        bucket.put(i, {}, weight);
    }
    return bucket.is_full();
  }

  /// Strictly by index: collectives must follow each other in one order on all ranks, whatever order backward takes.
  void launch_full() {
    while (launched < buckets.size() && is_full(buckets[launched])) {
      if (launched == 0) first_launch = Clock::now();
      if (!WorkGraph::is_recording()) totals.bytes += buckets[launched].bytes();
      buckets[launched].launch(group, launched);
      ++launched;
    }
  }

  void finish() {
    const Clock::time_point begin = Clock::now();
    for (const GradientBucket& bucket : buckets)
      if (bucket.is_averaged()) totals.early_bytes += bucket.bytes();
    for (GradientBucket& bucket : buckets) {
      for (std::size_t i = 0; i < bucket.size(); ++i) {
        if (!bucket.has(i)) bucket.put(i, autograd::grad(bucket.parameter(i)), weight);
      }
      launch_full();
    }
    std::vector<std::unique_ptr<Work>> going_on;
    for (GradientBucket& bucket : buckets)
      if (std::unique_ptr<Work> work = bucket.finish(); work != nullptr) going_on.push_back(std::move(work));
    const Clock::time_point end = Clock::now();
    const bool had_launched = std::exchange(launched, 0) > 0;
    started = false;
    weight = 1.0;
    if (WorkGraph::is_recording()) return;
    ++totals.steps;
    totals.waited_seconds += seconds_between(begin, end);
    if (had_launched) totals.seconds += seconds_between(first_launch, end);
    under_way.add(std::move(going_on));
    if (order.empty() && !trained.empty()) learn_order();
  }

  /// Of a launch of what backward() and finish() have recorded.
  void finish_launched() {
    std::int64_t bytes = 0;
    for (const GradientBucket& bucket : buckets) bytes += bucket.bytes();
    totals.bytes += bytes;
    ++totals.steps;
    std::vector<std::unique_ptr<Work>> launch;
    launch.push_back(group.launched_all_reduces(trained.front().device(), bytes));
    under_way.add(std::move(launch));
  }

  void abandon_step() {
    for (GradientBucket& bucket : buckets) bucket.abandon();
    launched = 0;
    started = false;
    weight = 1.0;
  }
};

DistributedDataParallel::DistributedDataParallel(ProcessGroup& group, NamedTensors parameters, NamedTensors buffers,
                                                 DistributedOptions options)
    : group_(group),
      parameters_(std::move(parameters)),
      buffers_(std::move(buffers)),
      state_(std::make_shared<State>(group)) {
  State& state = *state_;
  for (const NamedTensors* tensors : {&parameters_, &buffers_})
    for (const auto& [name, tensor] : *tensors)
      require(tensor.defined(), "DistributedDataParallel: tensor '{}' is undefined; leave it out", name);
  for (const auto& [name, tensor] : parameters_) {
    if (!autograd::requires_grad(tensor) || contains(state.trained, tensor)) continue;
    if (!state.trained.empty()) {
      const Device device = state.trained.front().device();
      require(tensor.device() == device,
              "DistributedDataParallel: parameter '{}' is on {}, '{}' on {}; move the whole module by to(device)", name,
              name_of(tensor.device()), state.names.front(), name_of(device));
    }
    state.trained.push_back(tensor);
    state.names.push_back(name);
  }
  state.half = options.half;
  if (group.size() > 1) check_same(group, "the model", table_of(parameters_, buffers_));
  state.choose_bucket_bytes(options);
  require(
      state.first_bucket_bytes >= 0 && state.bucket_bytes >= 0,
      "DistributedDataParallel: first_bucket_bytes {} and bucket_bytes {} must be 0 (a bucket for each gradient) or "
      "more",
      state.first_bucket_bytes, state.bucket_bytes);
  state.plan = plan_buckets(state.trained, state.first_bucket_bytes, state.bucket_bytes, options.half);
  if (group.size() == 1) {
    for (const std::size_t i : state.plan.empty() ? std::vector<std::size_t>() : state.plan.front())
      autograd::on_gradient_final(state.trained[i], [weak = std::weak_ptr(state_)](Tensor gradient) {
        if (const auto alive = weak.lock()) alive->count_in_first_bucket();
        return gradient;
      });
    return;
  }

  check_same(group, "DistributedDataParallel's options",
             fmt::format("first_bucket_bytes={}\nbucket_bytes={}\nhalf={}\n", state.first_bucket_bytes,
                         state.bucket_bytes, options.half == HalfExchange::as_half ? "as_half" : "in_f32"));
  for (const auto& [name, tensor] : parameters_) broadcast_in_place(group, tensor);
  sync_buffers();

  state.make_buckets();
  for (std::size_t i = 0; i < state.trained.size(); ++i) {
    autograd::on_gradient_final(state.trained[i], [weak = std::weak_ptr(state_), i](const Tensor& gradient) {
      const auto alive = weak.lock();
      return alive ? alive->put_into_bucket(i, gradient) : gradient;
    });
  }
}

DistributedDataParallel::~DistributedDataParallel() = default;

void DistributedDataParallel::set_gradient_weight(double weight) {
  require(weight >= 0.0 && weight < 1e300, "set_gradient_weight: {} is not a weight; it must be 0 or more", weight);
  require(!state_->started,
          "set_gradient_weight: gradients of this step are under way already; set it before backward");
  state_->weight = weight;
}

void DistributedDataParallel::finish() {
  const ProfileRange range("finish gradients");
  if (group_.size() > 1) return state_->finish();
  state_->finish_alone();
  const double weight = std::exchange(state_->weight, 1.0);
  if (weight == 1.0) return;
  for (const Tensor& parameter : state_->trained) {
    const Tensor gradient = autograd::grad(parameter);
    if (!gradient.defined()) continue;
    const Tensor dense = gradient.contiguous();
    scale(dense, weight);
    autograd::set_grad(parameter, dense);
  }
}

std::shared_ptr<Work> DistributedDataParallel::exchange_under_way() const { return state_->under_way.last(); }

std::string DistributedDataParallel::recording_obstacle() const {
  if (group_.size() == 1 || state_->trained.empty()) return "";
  return group_.recording_obstacle(state_->trained.front().device());
}

void DistributedDataParallel::finish_launched() {
  if (group_.size() > 1 && !state_->trained.empty()) state_->finish_launched();
}

void DistributedDataParallel::abandon_step() { state_->abandon_step(); }

DistributedDataParallel::NoSync DistributedDataParallel::no_sync() { return NoSync(state_->synchronising); }

void DistributedDataParallel::sync_buffers() {
  if (group_.size() == 1) return;
  for (const auto& [name, tensor] : buffers_) broadcast_in_place(group_, tensor);
}

void DistributedDataParallel::check_replicas() {
  if (group_.size() == 1) return;
  std::vector<std::int64_t> mine;
  std::vector<std::string_view> names;
  for (const NamedTensors* tensors : {&parameters_, &buffers_}) {
    for (const auto& [name, tensor] : *tensors) {
      mine.push_back(static_cast<std::int64_t>(hash_tensor(tensor)));
      names.push_back(name);
    }
  }
  const auto count = static_cast<std::int64_t>(mine.size());
  const auto all = group_.all_gather(Tensor::from(mine, {count})).to_vector<std::int64_t>();
  for (std::int64_t i = 0; i < count; ++i) {
    std::string ranks;
    for (std::int64_t rank = 1; rank < group_.size(); ++rank) {
      const bool same = all[static_cast<std::size_t>(rank * count + i)] == all[static_cast<std::size_t>(i)];
      if (!same) ranks += fmt::format("{}{}", ranks.empty() ? "" : ", ", rank);
    }
    if (ranks.empty()) continue;
    throw AgreedError(fmt::format("replicas differ: '{}' on rank {} is not what it is on rank 0",
                                  names[static_cast<std::size_t>(i)], ranks));
  }
}

ExchangeTotals DistributedDataParallel::take_totals() { return std::exchange(state_->totals, {}); }

const std::vector<std::int64_t>& DistributedDataParallel::gradient_order() const { return state_->order; }

void DistributedDataParallel::check_gradient_order(const std::vector<std::int64_t>& order) const {
  std::vector<std::int64_t> sorted = order, all(state_->trained.size());
  std::ranges::sort(sorted);
  std::iota(all.begin(), all.end(), std::int64_t{0});
  require(
      order.empty() || sorted == all,
      "DistributedDataParallel: an order of {} gradients must have each of 0 to {} once, and this one has {} entries",
      all.size(), std::ssize(all) - 1, order.size());
}

void DistributedDataParallel::set_gradient_order(const std::vector<std::int64_t>& order) {
  check_gradient_order(order);
  require(!state_->started, "set_gradient_order: gradients of this step are under way already; set it before backward");
  if (group_.size() == 1) return;
  check_same(group_, "set_gradient_order's order", fmt::format("{}", fmt::join(order, " ")));
  state_->take_order(order);
}

std::size_t DistributedDataParallel::gradient_count() const { return state_->trained.size(); }

std::size_t DistributedDataParallel::bucket_count() const { return state_->buckets.size(); }

std::int64_t DistributedDataParallel::bucket_bytes() const { return state_->bucket_bytes; }

std::vector<std::int64_t> DistributedDataParallel::bucket_sizes() const {
  std::vector<std::int64_t> sizes;
  for (const std::vector<std::size_t>& members : state_->plan) {
    std::int64_t bytes = 0;
    for (const std::size_t i : members) {
      const Tensor& parameter = state_->trained[i];
      bytes += parameter.numel() * size_of(exchange_dtype(parameter.dtype(), state_->half));
    }
    sizes.push_back(bytes);
  }
  return sizes;
}

}  // namespace tandem::comm

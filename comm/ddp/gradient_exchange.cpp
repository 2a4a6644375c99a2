// What happens in a step, gradient by gradient.
#include "tandem/comm/ddp/gradient_exchange.h"

#include "tandem/autograd/variable.h"
#include "tandem/core/work_graph.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

namespace tandem::comm {

namespace {

double seconds_between(std::chrono::steady_clock::time_point begin, std::chrono::steady_clock::time_point end) {
  return std::chrono::duration<double>(end - begin).count();
}

}  // namespace

GradientExchange::GradientExchange(ProcessGroup& group, std::vector<Tensor> parameters, std::vector<std::string> names,
                                   const DistributedOptions& options)
    : group_(group), parameters_(std::move(parameters)), names_(std::move(names)), half_(options.half) {
  choose_bucket_bytes(options);
  require(
      first_bucket_bytes_ >= 0 && bucket_bytes_ >= 0,
      "DistributedDataParallel: first_bucket_bytes {} and bucket_bytes {} must be 0 (a bucket for each gradient) or "
      "more",
      first_bucket_bytes_, bucket_bytes_);
  plan_ = plan_buckets(parameters_, first_bucket_bytes_, bucket_bytes_, half_);
}

/// Collective.
void GradientExchange::choose_bucket_bytes(const DistributedOptions& options) {
  std::int64_t total = 0;
  for (const Tensor& tensor : parameters_)
    total += tensor.numel() * size_of(exchange_dtype(tensor.dtype(), options.half));
  const Device device = parameters_.empty() ? Device{} : parameters_.front().device();
  const double latency = latency_bytes(group_, device);  // also where some ranks are given a size and others not
  bucket_bytes_ = options.bucket_bytes.value_or(default_bucket_bytes(total, latency));
  first_bucket_bytes_ = options.first_bucket_bytes.value_or(std::min(bucket_bytes_, std::int64_t{1} << 20));
}

void GradientExchange::make_buckets() {
  buckets_.clear();
  places_.resize(parameters_.size());
  for (std::size_t bucket = 0; bucket < plan_.size(); ++bucket) {
    std::vector<Tensor> members;
    for (const std::size_t parameter : plan_[bucket]) {
      places_[parameter] = {bucket, members.size()};
      members.push_back(parameters_[parameter]);
    }
    buckets_.emplace_back(std::move(members), half_, &group_);
  }
}

Tensor GradientExchange::put(std::size_t parameter, const Tensor& gradient) {
  const auto [bucket, index] = places_[parameter];
  require(!buckets_[bucket].has(index),
          "DistributedDataParallel: parameter '{}' got a second gradient before finish(); wrap all but the last "
          "backward of a step in no_sync(), and where an error ended a step, make a new object",
          names_[parameter]);
  if (!synchronising_) return gradient;
  require(!buckets_[bucket].is_replaced(index),
          "DistributedDataParallel: the gradient of parameter '{}' has another place now: use one object of this kind "
          "at a time for a parameter, and no set_gradient_place()",
          names_[parameter]);
  has_started_ = true;
  if (order_.empty()) arrived_.push_back(static_cast<std::int64_t>(parameter));
  Tensor view = buckets_[bucket].put(index, gradient, weight_);
  launch_full();
  for (std::size_t i = 0; i < launched_; ++i) buckets_[i].poll();
  return view;
}

/// Parameters that were frozen since they were given want no gradient any more, and the bucket need not wait for
/// theirs.
bool GradientExchange::is_full(GradientBucket& bucket) const {
  for (std::size_t i = 0; i < bucket.size(); ++i) {
    const Tensor& parameter = bucket.parameter(i);
    if (!bucket.has(i) && !autograd::requires_grad(parameter) && !autograd::grad(parameter).defined())
      bucket.put(i, {}, weight_);
  }
  return bucket.is_full();
}

/// Strictly by index: collectives must follow each other in one order on all ranks, whatever order backward takes.
void GradientExchange::launch_full() {
  while (launched_ < buckets_.size() && is_full(buckets_[launched_])) {
    if (launched_ == 0) first_launch_ = Clock::now();
    if (!WorkGraph::is_recording()) totals_.bytes += buckets_[launched_].bytes();
    buckets_[launched_].launch(group_, launched_);
    ++launched_;
  }
}

void GradientExchange::finish() {
  const Clock::time_point begin = Clock::now();
  for (const GradientBucket& bucket : buckets_)
    if (bucket.is_averaged()) totals_.early_bytes += bucket.bytes();
  for (GradientBucket& bucket : buckets_) {
    for (std::size_t i = 0; i < bucket.size(); ++i) {
      if (!bucket.has(i)) bucket.put(i, autograd::grad(bucket.parameter(i)), weight_);
    }
    launch_full();
  }
  std::vector<std::unique_ptr<Work>> going_on;
  for (GradientBucket& bucket : buckets_)
    if (std::unique_ptr<Work> work = bucket.finish(); work != nullptr) going_on.push_back(std::move(work));
  const Clock::time_point end = Clock::now();
  const bool had_launched = std::exchange(launched_, 0) > 0;
  has_started_ = false;
  weight_ = 1.0;
  if (WorkGraph::is_recording()) return;
  ++totals_.steps;
  totals_.waited_seconds += seconds_between(begin, end);
  if (had_launched) totals_.seconds += seconds_between(first_launch_, end);
  under_way_.add(std::move(going_on));
  if (order_.empty() && !parameters_.empty()) learn_order();
}

/// Rank 0's order holds for all. Nothing is known yet where it had no gradient in this step.
void GradientExchange::learn_order() {
  const std::string_view mine(reinterpret_cast<const char*>(arrived_.data()), arrived_.size() * sizeof(std::int64_t));
  const std::string bytes = group_.all_gather_bytes(group_.rank() == 0 ? mine : "").front();
  arrived_.clear();
  if (bytes.empty()) return;
  std::vector<std::int64_t> known(bytes.size() / sizeof(std::int64_t));
  std::memcpy(known.data(), bytes.data(), bytes.size());
  // Those without a gradient come last.
  for (std::int64_t i = std::ssize(parameters_); i-- > 0;)
    if (std::ranges::find(known, i) == known.end()) known.push_back(i);
  take_order(std::move(known));
}

void GradientExchange::take_order(std::vector<std::int64_t> known) {
  order_ = std::move(known);
  arrived_.clear();
  const std::vector<std::size_t> indices(order_.begin(), order_.end());
  BucketPlan next = order_.empty() ? plan_buckets(parameters_, first_bucket_bytes_, bucket_bytes_, half_)
                                   : plan_buckets(parameters_, indices, first_bucket_bytes_, bucket_bytes_, half_);
  if (next == plan_ || has_lost_a_place()) return;
  plan_ = std::move(next);
  make_buckets();
}

/// A later object serves a parameter: it is not to be taken from it.
bool GradientExchange::has_lost_a_place() const {
  return std::ranges::any_of(buckets_, [](const GradientBucket& bucket) {
    for (std::size_t i = 0; i < bucket.size(); ++i)
      if (bucket.is_replaced(i)) return true;
    return false;
  });
}

void GradientExchange::finish_launched() {
  std::int64_t bytes = 0;
  for (const GradientBucket& bucket : buckets_) bytes += bucket.bytes();
  totals_.bytes += bytes;
  ++totals_.steps;
  std::vector<std::unique_ptr<Work>> launch;
  launch.push_back(group_.launched_all_reduces(parameters_.front().device(), bytes));
  under_way_.add(std::move(launch));
}

void GradientExchange::abandon_step() {
  for (GradientBucket& bucket : buckets_) bucket.abandon();
  launched_ = 0;
  has_started_ = false;
  weight_ = 1.0;
}

/// On one rank: gradients that the first bucket would get.
std::size_t GradientExchange::first_bucket_gets() const {
  return static_cast<std::size_t>(std::ranges::count_if(
      plan_.front(), [&](std::size_t parameter) { return autograd::requires_grad(parameters_[parameter]); }));
}

void GradientExchange::count_in_first_bucket() {
  if (synchronising_ && ++first_bucket_has_ == first_bucket_gets()) first_launch_ = Clock::now();
}

void GradientExchange::finish_alone() {
  if (!plan_.empty() && first_bucket_has_ > 0 && first_bucket_has_ >= first_bucket_gets())
    totals_.window_seconds += seconds_between(first_launch_, Clock::now());
  first_bucket_has_ = 0;
}

}  // namespace tandem::comm

// Filling, reducing and handing out buckets of gradients.
#include "tandem/comm/ddp/gradient_bucket.h"

#include "tandem/autograd/precision.h"
#include "tandem/autograd/variable.h"
#include "tandem/comm/backends/flat_math.h"
#include "tandem/core/allocator.h"
#include "tandem/core/timeline.h"
#include "tandem/core/work_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>

namespace tandem::comm {

DType exchange_dtype(DType parameter_dtype, HalfExchange half) {
  return half == HalfExchange::in_f32 ? autograd::wide_dtype(parameter_dtype) : parameter_dtype;
}

std::int64_t default_bucket_bytes(std::int64_t total_bytes, double latency_bytes) {
  constexpr double kLeast = 64.0 * 1024, kMost = 25.0 * 1024 * 1024;
  const double best = std::sqrt(static_cast<double>(total_bytes) * latency_bytes);
  return static_cast<std::int64_t>(std::clamp(best, kLeast, kMost));
}

namespace {

/// Of the group's messages, or what is usual where it sends none itself.
double predicted_latency_bytes(const ProcessGroup& group) {
  constexpr std::int64_t kFew = 4, kMany = std::int64_t{1} << 20;
  constexpr double kUsual = 64.0 * 1024, kMost = 1e15;
  const std::optional<double> few = group.predicted_all_reduce_seconds(kFew);
  if (!few) return kUsual;
  // Other algorithms may go for larger data, and costs may be flat: then nothing follows from them.
  const double of_many = *group.predicted_all_reduce_seconds(4 * kMany) - *group.predicted_all_reduce_seconds(kMany);
  return of_many > 0.0 ? std::min(3.0 * static_cast<double>(kMany) * *few / of_many, kMost) : kUsual;
}

}  // namespace

double latency_bytes(ProcessGroup& group, Device device) {
  if (device.type != DeviceType::cpu) return 2.0 * 1024 * 1024;
  const Tensor bytes =
      Tensor::full({1}, group.rank() == 0 ? predicted_latency_bytes(group) : 0.0, {.dtype = DType::f64});
  group.broadcast(Out(bytes));
  return bytes.item();
}

BucketPlan plan_buckets(std::span<const Tensor> parameters, std::int64_t first_bytes, std::int64_t bytes,
                        HalfExchange half) {
  std::vector<std::size_t> order(parameters.size());
  std::iota(order.rbegin(), order.rend(), std::size_t{0});
  return plan_buckets(parameters, order, first_bytes, bytes, half);
}

BucketPlan plan_buckets(std::span<const Tensor> parameters, std::span<const std::size_t> order,
                        std::int64_t first_bytes, std::int64_t bytes, HalfExchange half) {
  struct Open {
    std::vector<std::size_t> members;
    std::int64_t bytes = 0;
    bool is_first = true;
  };
  std::array<Open, kDTypeCount> open;
  BucketPlan plan;
  std::vector<std::size_t> due(parameters.size());  // of each parameter, its place in the order
  for (std::size_t place = 0; place < order.size(); ++place) {
    const std::size_t i = order[place];
    due[i] = place;
    const DType dtype = exchange_dtype(parameters[i].dtype(), half);
    Open& bucket = open[static_cast<std::size_t>(dtype)];
    bucket.members.push_back(i);
    bucket.bytes += parameters[i].numel() * size_of(dtype);
    if (bucket.bytes < (bucket.is_first ? first_bytes : bytes)) continue;
    plan.push_back(std::move(bucket.members));
    bucket = Open{{}, 0, false};
  }
  for (Open& bucket : open) {
    if (!bucket.members.empty()) plan.push_back(std::move(bucket.members));
  }
  std::ranges::sort(plan, {}, [&](const auto& members) { return due[members.back()]; });
  return plan;
}

GradientBucket::GradientBucket(std::vector<Tensor> parameters, HalfExchange half, ProcessGroup* group)
    : parameters_(std::move(parameters)), has_gradient_(parameters_.size(), false), taken_(parameters_.size(), false) {
  const MemoryTagScope scope(MemoryTag::comm);
  TensorOptions options = parameters_.front().options();
  options.dtype = exchange_dtype(options.dtype, half);
  const std::int64_t unit = kAlignment / size_of(options.dtype);
  const auto room_for = [unit](const Tensor& parameter) { return (parameter.numel() + unit - 1) / unit * unit; };
  std::int64_t elements = 0;
  for (const Tensor& parameter : parameters_) elements += room_for(parameter);
  const auto marks = static_cast<std::int64_t>(parameters_.size());
  const bool is_shared = group != nullptr && options.device == Device{};
  flat_ =
      is_shared ? group->shared_zeros({elements + marks}, options.dtype) : Tensor::zeros({elements + marks}, options);
  marks_ = flat_.narrow(0, elements, marks).to(Device{});
  std::int64_t at = 0;
  for (const Tensor& parameter : parameters_) {
    const Strides strides =
        parameter.is_dense() ? parameter.strides() : dense_strides(parameter.shape(), Layout::row_major);
    views_.push_back(flat_.as_strided(parameter.shape(), strides, at));
    autograd::set_gradient_place(parameter, views_.back());
    at += room_for(parameter);
  }
}

GradientBucket::~GradientBucket() {
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const Tensor place = autograd::gradient_place(parameters_[i]);
    if (place.defined() && place.is_same(views_[i])) autograd::set_gradient_place(parameters_[i], {});
  }
}

bool GradientBucket::is_replaced(std::size_t index) const {
  const Tensor place = autograd::gradient_place(parameters_[index]);
  return place.defined() && !place.is_same(views_[index]);
}

Tensor GradientBucket::mark(std::size_t index) const { return marks_.narrow(0, static_cast<std::int64_t>(index), 1); }

Tensor GradientBucket::reduced_marks() const { return flat_.narrow(0, flat_.numel() - marks_.numel(), marks_.numel()); }

Tensor GradientBucket::put(std::size_t index, const Tensor& gradient, double weight) {
  const Tensor& view = views_[index];
  has_gradient_[index] = gradient.defined();
  mark(index).fill(gradient.defined() ? 1.0 : 0.0);
  if (!gradient.defined() || weight == 0.0) {
    view.zero();  // a weight of 0 must silence NaN as well
  } else {
    if (!gradient.is_same(view)) autograd::copy_gradient(gradient, view);
    if (weight != 1.0) scale(view, weight);
  }
  taken_[index] = true;
  ++taken_count_;
  return view;
}

void GradientBucket::launch(ProcessGroup& group, std::size_t number) {
  exchange_ = nullptr;
  if (timeline_is_recorded())
    exchange_ = std::make_unique<CommunicationEvent>(CommunicationEvent{.kind = CommunicationKind::bucket,
                                                                        .name = fmt::format("bucket {}", number),
                                                                        .rank = group.rank(),
                                                                        .number = static_cast<std::int64_t>(number),
                                                                        .bytes = bytes(),
                                                                        .begin_ns = detail::timeline_ns()});
  if (flat_.device() != marks_.device()) write_marks();
  work_ = group.all_reduce_async(Out(flat_), ReduceOp::average);
}

/// The average is there.
void GradientBucket::end_exchange() {
  is_averaged_ = true;
  if (exchange_ == nullptr) return;
  exchange_->duration_ns = detail::timeline_ns() - exchange_->begin_ns;
  detail::add_to_timeline(*std::exchange(exchange_, nullptr));
}

/// On the device, where they are as they were in most steps: then nothing comes from the host. In a recording they are
/// left as they are, as no rank reads those of a launch.
void GradientBucket::write_marks() {
  if (WorkGraph::is_recording()) return;
  if (written_there_ != has_gradient_) {
    marks_there_ = marks_.to(flat_.device());
    written_there_ = has_gradient_;
  }
  reduced_marks().copy_from_async(marks_there_);
}

/// Whether no other rank can have a gradient that this one lacks: what wants none is frozen, on all ranks alike.
bool GradientBucket::knows_all_marks() const {
  for (std::size_t i = 0; i < parameters_.size(); ++i)
    if (!has_gradient_[i] && autograd::requires_grad(parameters_[i])) return false;
  return true;
}

std::unique_ptr<Work> GradientBucket::finish() {
  const bool is_on_device = flat_.device() != marks_.device(), is_known = is_on_device && knows_all_marks();
  require(is_known || !WorkGraph::is_recording(),
          "DistributedDataParallel: a parameter has no gradient on this rank, and the host asks whether another has "
          "one: freeze it on all ranks");
  std::unique_ptr<Work> going_on;
  // A timeline tells how long the host waits.
  if (is_known && !is_averaged_ && exchange_ == nullptr && work_->join(current_stream(flat_.device()))) {
    going_on = std::move(work_);
  } else {
    work_->wait();
    if (!is_averaged_) end_exchange();
  }
  if (is_on_device && !is_known) marks_.copy_from(reduced_marks());
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const Tensor& parameter = parameters_[i];
    const bool any_rank_has_one = is_known ? has_gradient_[i] : mark(i).item() != 0.0;
    if (!any_rank_has_one) {
      autograd::clear_grad(parameter);
    } else if (!autograd::grad(parameter).is_same(views_[i])) {  // this rank had none, or it was dropped meanwhile
      autograd::set_grad(parameter, views_[i]);
    }
  }
  empty();
  return going_on;
}

void GradientBucket::abandon() {
  exchange_ = nullptr;
  empty();
}

void GradientBucket::empty() {
  work_.reset();
  is_averaged_ = false;
  std::fill(taken_.begin(), taken_.end(), false);
  taken_count_ = 0;
}

}  // namespace tandem::comm

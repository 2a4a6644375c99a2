// Filling, reducing and handing out buckets of gradients.
#include "comm/gradient_bucket.h"

#include "autograd/precision.h"
#include "autograd/variable.h"
#include "comm/flat_math.h"
#include "kernels/cast/cast.h"

#include <algorithm>
#include <array>

namespace tandem::comm {

DType exchange_dtype(DType parameter_dtype, HalfExchange half) {
  return half == HalfExchange::in_f32 ? autograd::wide_dtype(parameter_dtype) : parameter_dtype;
}

BucketPlan plan_buckets(std::span<const Tensor> parameters, std::int64_t first_bytes, std::int64_t bytes,
                        HalfExchange half) {
  struct Open {
    std::vector<std::size_t> members;
    std::int64_t bytes = 0;
    bool is_first = true;
  };
  std::array<Open, kDTypeCount> open;
  BucketPlan plan;
  for (std::size_t i = parameters.size(); i-- > 0;) {
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
  std::sort(plan.begin(), plan.end(), [](const auto& a, const auto& b) { return a.back() > b.back(); });
  return plan;
}

GradientBucket::GradientBucket(std::vector<Tensor> parameters, HalfExchange half)
    : parameters_(std::move(parameters)), taken_(parameters_.size(), false) {
  std::int64_t elements = 0;
  for (const Tensor& parameter : parameters_) elements += parameter.numel();
  const MemoryTagScope scope(MemoryTag::comm);
  const auto marks = static_cast<std::int64_t>(parameters_.size());
  TensorOptions options = parameters_.front().options();
  options.dtype = exchange_dtype(options.dtype, half);
  flat_ = Tensor::zeros({elements + marks}, options);
  marks_ = flat_.narrow(0, elements, marks).to(Device{});
  std::int64_t at = 0;
  for (const Tensor& parameter : parameters_) {
    const Strides strides =
        parameter.is_dense() ? parameter.strides() : dense_strides(parameter.shape(), Layout::row_major);
    views_.push_back(flat_.as_strided(parameter.shape(), strides, at));
    at += parameter.numel();
  }
}

Tensor GradientBucket::mark(std::size_t index) const { return marks_.narrow(0, static_cast<std::int64_t>(index), 1); }

Tensor GradientBucket::reduced_marks() const { return flat_.narrow(0, flat_.numel() - marks_.numel(), marks_.numel()); }

void GradientBucket::take(std::size_t index, double weight) {
  const Tensor& view = views_[index];
  const Tensor gradient = autograd::grad(parameters_[index]);
  mark(index).fill(gradient.defined() ? 1.0 : 0.0);
  if (!gradient.defined() || weight == 0.0) {
    view.zero();  // a weight of 0 must silence NaN as well
  } else {
    const bool is_here = view.numel() == 0 || gradient.raw_data() == view.raw_data();  // kept since the last step
    if (!is_here && gradient.dtype() == view.dtype()) {
      view.copy_from(gradient);
    } else if (!is_here) {
      kernels::cast(gradient, view);
    }
    if (weight != 1.0) scale(view, weight);
  }
  if (gradient.defined()) autograd::set_grad(parameters_[index], view);
  taken_[index] = true;
  ++taken_count_;
}

void GradientBucket::launch(ProcessGroup& group) {
  if (flat_.device() != marks_.device()) reduced_marks().copy_from(marks_);
  work_ = group.all_reduce_async(flat_, ReduceOp::average);
}

void GradientBucket::finish() {
  work_->wait();
  work_.reset();
  if (flat_.device() != marks_.device()) marks_.copy_from(reduced_marks());
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (mark(i).item() != 0.0) {
      autograd::set_grad(parameters_[i], views_[i]);
    } else {
      autograd::clear_grad(parameters_[i]);
    }
  }
  std::fill(taken_.begin(), taken_.end(), false);
  taken_count_ = 0;
}

}  // namespace tandem::comm

// An average as a step of gradient descent.
#include "tandem/optim/ema.h"

#include "tandem/autograd/functions/cast.h"
#include "tandem/autograd/grad_mode.h"
#include "tandem/core/describe.h"
#include "tandem/core/memory.h"
#include "tandem/core/profiler.h"
#include "tandem/kernels/optimizer/all_finite.h"
#include "tandem/kernels/optimizer/sgd.h"
#include "tandem/kernels/optimizer/tensor_list.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace tandem::optim {
namespace {

Tensor average_of(const Tensor& tensor) {
  const autograd::NoGrad no_grad;
  const MemoryTagScope scope(MemoryTag::optimizer);
  const Tensor plain = tensor.detach();
  if (!is_half(plain.dtype())) return plain.clone();
  return autograd::cast(plain, kernels::optimizer_state_dtype(plain.dtype()));
}

}  // namespace

ExponentialMovingAverage::ExponentialMovingAverage(NamedTensors tensors, double decay, const AverageOptions& options)
    : tensors_(std::move(tensors)), decay_(decay), options_(options) {
  require(decay > 0.0 && decay < 1.0, "ema: the decay must be between 0 and 1, got {}", decay);
  require(options.every >= 1, "ema: every must be 1 step or more, got {}", options.every);
  for (const auto& [name, tensor] : tensors_) {
    require(tensor.defined() && tensor.is_dense(), "ema: {} must be a dense tensor, got {}", name, describe(tensor));
    averages_.emplace_back(name, average_of(tensor));
    require(averages_.back().second.strides() == tensor.strides(), "ema: {}, {}, has no dense copy in its strides",
            name, tensor);
    const Tensor plain = tensor.detach();
    is_averaged_.push_back(is_floating(plain.dtype()) && kernels::all_finite(std::array{plain}));
  }
}

/// Whether an answer that is known on that GPU alone says nothing to what updates a tensor: a copy on a GPU goes by no
/// answer, and the others by one where they are.
bool ExponentialMovingAverage::needs_answer(std::size_t index, Device asked) const {
  const Tensor& tensor = tensors_[index].second;
  const bool is_averaged = is_floating(tensor.dtype()) && is_averaged_[index];
  return is_averaged ? tensor.device() != asked : tensor.device().type == DeviceType::cuda;
}

void ExponentialMovingAverage::settle() const {
  if (unsettled_.passed()) {
    for (const auto& [average, value] : copies_) average.copy_from(value);
  } else {
    --updates_;
  }
  unsettled_ = {};
  copies_.clear();
}

std::int64_t ExponentialMovingAverage::updates() const {
  settle();
  return updates_;
}

const NamedTensors& ExponentialMovingAverage::averages() const {
  settle();
  return averages_;
}

/// Of the last update, which moves averages.
double ExponentialMovingAverage::next_decay() const {
  const double decay = std::pow(decay_, static_cast<double>(options_.every));
  const std::int64_t before = updates_ / options_.every - 1;
  const auto moves = static_cast<double>(before);
  return options_.warms_up ? std::min(decay, (1.0 + moves) / (10.0 + moves)) : decay;
}

void ExponentialMovingAverage::update() { update(FiniteCheck()); }

void ExponentialMovingAverage::update(const FiniteCheck& taken) {
  const ProfileRange range("average weights");
  const autograd::NoGrad no_grad;
  const MemoryTagScope scope(MemoryTag::workspace);
  settle();
  bool is_known = taken.is_known();
  const Tensor skip = is_known ? Tensor() : taken.found();
  for (std::size_t i = 0; i < tensors_.size() && !is_known; ++i) is_known = needs_answer(i, skip.device());
  if (is_known && !taken.passed()) return;
  if (!is_known) unsettled_ = taken;
  if (++updates_ % options_.every != 0) return;
  const double decay = next_decay();
  std::vector<kernels::SgdItem> items;
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    const Tensor& average = averages_[i].second;
    const Tensor now = tensors_[i].second.detach();
    if (!is_floating(now.dtype()) || !is_averaged_[i]) {
      const Tensor value = is_floating(now.dtype()) ? autograd::cast(now, average.dtype()) : now;
      if (is_known) average.copy_from(value);
      if (!is_known) copies_.emplace_back(average, value.clone());
    } else if (now.numel() > 0) {
      items.push_back(
          {.parameter = Out(average), .gradient = autograd::cast(now, average.dtype()), .momentum_buffer = {}});
    }
  }
  // average -= (1 - d) * (average - tensor): descent with the weight decay 1 along the tensor itself.
  if (items.empty()) return;
  control_.set(0, {.lr = 1.0 - decay, .weight_decay = 1.0, .gradient_factor = -1.0});
  kernels::sgd_step(items, {.skip = is_known ? Tensor() : skip,
                            .control = control_.row(0, items.front().parameter.device()),
                            .table = &table_});
}

void ExponentialMovingAverage::load(const NamedTensors& averages, std::int64_t updates) {
  require(updates >= 0, "ema: the number of updates must be 0 or more, got {}", updates);
  require(averages.size() == averages_.size(), "ema: {} averages are given, there are {} tensors", averages.size(),
          averages_.size());
  std::vector<Tensor> sources;
  for (const auto& [name, average] : averages_) {
    const auto found =
        std::find_if(averages.begin(), averages.end(), [&, &own = name](const auto& e) { return e.first == own; });
    require(found != averages.end(), "ema: among those given there is no average of {}", name);
    const Tensor& source = found->second;
    require(source.defined() && source.shape() == average.shape() && source.dtype() == average.dtype(),
            "ema: the average of {} must be {}, got {}", name, average, describe(source));
    sources.push_back(source);
  }
  for (std::size_t i = 0; i < sources.size(); ++i) averages_[i].second.copy_from(sources[i]);
  unsettled_ = {};
  copies_.clear();
  updates_ = updates;
}

}  // namespace tandem::optim

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

ExponentialMovingAverage::ExponentialMovingAverage(NamedTensors tensors, double decay)
    : tensors_(std::move(tensors)), decay_(decay) {
  require(decay > 0.0 && decay < 1.0, "ema: the decay must be between 0 and 1, got {}", decay);
  for (const auto& [name, tensor] : tensors_) {
    require(tensor.defined() && tensor.is_dense(), "ema: {} must be a dense tensor, got {}", name, describe(tensor));
    averages_.emplace_back(name, average_of(tensor));
    require(averages_.back().second.strides() == tensor.strides(), "ema: {}, {}, has no dense copy in its strides",
            name, tensor);
    const Tensor plain = tensor.detach();
    is_averaged_.push_back(is_floating(plain.dtype()) && kernels::all_finite(std::array{plain}));
  }
}

bool ExponentialMovingAverage::is_copied_on_gpu(std::size_t index) const {
  const Tensor& tensor = tensors_[index].second;
  return tensor.device().type == DeviceType::cuda && (!is_floating(tensor.dtype()) || !is_averaged_[index]);
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

void ExponentialMovingAverage::update() { update(FiniteCheck()); }

void ExponentialMovingAverage::update(const FiniteCheck& taken) {
  const ProfileRange range("average weights");
  const autograd::NoGrad no_grad;
  const MemoryTagScope scope(MemoryTag::workspace);
  settle();
  // A copy goes by no answer on the GPU.
  bool waits = false;
  for (std::size_t i = 0; i < tensors_.size(); ++i) waits = waits || is_copied_on_gpu(i);
  if ((waits || taken.is_known()) && !taken.passed()) return;
  const bool is_known = taken.is_known();
  if (!is_known) unsettled_ = taken;
  const auto t = static_cast<double>(updates_++);
  const double decay = std::min(decay_, (1.0 + t) / (10.0 + t));
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
  kernels::sgd_step(items, {.skip = is_known ? Tensor() : taken.found(),
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

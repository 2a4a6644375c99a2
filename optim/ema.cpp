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

void ExponentialMovingAverage::update() {
  const ProfileRange range("average weights");
  const autograd::NoGrad no_grad;
  const MemoryTagScope scope(MemoryTag::workspace);
  const auto t = static_cast<double>(updates_++);
  const double decay = std::min(decay_, (1.0 + t) / (10.0 + t));
  std::vector<kernels::SgdItem> items;
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    const Tensor& average = averages_[i].second;
    const Tensor now = tensors_[i].second.detach();
    if (!is_floating(now.dtype())) {
      average.copy_from(now);
    } else if (!is_averaged_[i]) {
      average.copy_from(autograd::cast(now, average.dtype()));
    } else if (now.numel() > 0) {
      items.push_back(
          {.parameter = Out(average), .gradient = autograd::cast(now, average.dtype()), .momentum_buffer = {}});
    }
  }
  // average -= (1 - d) * (average - tensor): descent with the weight decay 1 along the tensor itself.
  if (items.empty()) return;
  control_.set(0, {.lr = 1.0 - decay, .weight_decay = 1.0, .gradient_factor = -1.0});
  kernels::sgd_step(items, {.control = control_.row(0, items.front().parameter.device()), .table = &table_});
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
  updates_ = updates;
}

}  // namespace tandem::optim

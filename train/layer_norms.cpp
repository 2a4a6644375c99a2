// Parameters by layer, and their norms.
#include "tandem/train/layer_norms.h"

#include "tandem/autograd/functions/arithmetic.h"
#include "tandem/autograd/grad_mode.h"
#include "tandem/autograd/variable.h"
#include "tandem/core/memory.h"
#include "tandem/kernels/optimizer/norm.h"

#include <algorithm>
#include <cmath>
#include <string_view>

namespace tandem::train {
namespace {

std::string_view layer_of(std::string_view parameter) {
  const std::size_t dot = parameter.rfind('.');
  return dot == std::string_view::npos ? parameter : parameter.substr(0, dot);
}

double norm_of(const std::vector<Tensor>& tensors) {
  return tensors.empty() ? 0.0 : std::sqrt(kernels::squared_norm(tensors));
}

}  // namespace

LayerMeter::LayerMeter(const layers::Module& model, const optim::Optimizer& optimizer) {
  const autograd::NoGrad no_grad;
  const MemoryTagScope scope(MemoryTag::workspace);
  const std::vector<Tensor>& trained = optimizer.parameters();
  std::vector<std::vector<Tensor>> gradients;
  for (const auto& [name, parameter] : model.named_parameters()) {
    const auto found = std::find_if(trained.begin(), trained.end(),
                                    [&, &own = parameter](const Tensor& other) { return other.is_same(own); });
    if (found == trained.end()) continue;
    if (layers_.empty() || layers_.back().name != layer_of(name)) {
      layers_.push_back({.name = std::string(layer_of(name)), .weights = {}, .before = {}});
      gradients.emplace_back();
    }
    const Tensor master = optimizer.master(static_cast<std::size_t>(found - trained.begin()));
    const Tensor weight = master.defined() ? master : parameter.detach();
    layers_.back().weights.push_back(weight);
    layers_.back().before.push_back(weight.clone());
    if (const Tensor gradient = autograd::grad(parameter); gradient.defined()) gradients.back().push_back(gradient);
  }
  const double factor = std::abs(optimizer.gradient_factor());
  for (std::size_t i = 0; i < layers_.size(); ++i) layers_[i].gradient_norm = factor * norm_of(gradients[i]);
}

std::vector<LayerNorms> LayerMeter::norms() const {
  const autograd::NoGrad no_grad;
  const MemoryTagScope scope(MemoryTag::workspace);
  std::vector<LayerNorms> norms;
  for (const Layer& layer : layers_) {
    std::vector<Tensor> updates;
    for (std::size_t i = 0; i < layer.weights.size(); ++i)
      updates.push_back(autograd::sub(layer.weights[i], layer.before[i]));
    norms.push_back({layer.name, layer.gradient_norm, norm_of(updates), norm_of(layer.weights)});
  }
  return norms;
}

}  // namespace tandem::train

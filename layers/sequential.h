// Modules one after another.
#pragma once

#include "tandem/layers/container.h"

namespace tandem::layers {

/// torch.nn.Sequential. Unnamed modules are numbered as PyTorch would number them were fused layers written out: a
/// Conv2d with ReLU and a MaxPool2d are "0" and "2" (see Module::sequential_slots()). Mixing in named ones is like an
/// OrderedDict. A function of a tensor is a module, too.
/// Example:
///     #include "tandem/autograd/functions.h"
///     #include "tandem/layers/linear.h"
///     Initializer initializer(1);
///     Sequential network;
///     network.add<Linear>({.in = 784, .out = 128, .relu = true}, initializer);
///     network.add([](const Tensor& x) { return autograd::scale(x, 0.5); }, "Half");
///     network.add("head", std::make_unique<Linear>(LinearOptions{.in = 128, .out = 10}, initializer));
///     const std::string last = network.named_parameters().back().first;  // "head.bias"
///     const Tensor logits = network(Tensor::zeros({8, 784}));            // [8, 10]
class Sequential final : public Container {
 public:
  /// The modules one after another; neighbours that fit are computed by one kernel.
  Tensor forward(const Tensor& input) override;
  /// "Sequential of 3".
  std::string describe() const override;

  /// Calls modules [begin, end), neighbours at once where fusion.h has a row for them.
  Tensor run(std::size_t begin, std::size_t end, const Tensor& input);

 private:
  int slots_of(const Module& layer) const override { return layer.sequential_slots(); }
};

}  // namespace tandem::layers

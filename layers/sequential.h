// Modules one after another.
#pragma once

#include "tandem/layers/initializer.h"
#include "tandem/layers/module.h"

namespace tandem::layers {

/// torch.nn.Sequential. Unnamed modules are numbered as PyTorch would number them were fused layers written out: a
/// Conv2d with ReLU and a MaxPool2d are "0" and "2" (see Module::sequential_slots()). Mixing in named ones is like an
/// OrderedDict.
/// Example:
///     #include "tandem/layers/linear.h"
///     Initializer initializer(1);
///     Sequential network;
///     network.add<Linear>({.in = 784, .out = 128, .relu = true}, initializer);
///     network.add("head", std::make_unique<Linear>(LinearOptions{.in = 128, .out = 10}, initializer));
///     const std::string last = network.named_parameters().back().first;  // "head.bias"
///     const Tensor logits = network(Tensor::zeros({8, 784}));            // [8, 10]
class Sequential final : public Module {
 public:
  /// Appends a module; returns it.
  template <typename Layer>
  Layer& add(std::unique_ptr<Layer> layer) {
    return add(std::to_string(next_slot_), std::move(layer));
  }
  template <typename Layer>
  Layer& add(std::string name, std::unique_ptr<Layer> layer) {
    Layer& result = *layer;
    append(std::move(name), std::move(layer));
    return result;
  }

  /// Makes a Layer from its options and appends it.
  template <typename Layer>
  Layer& add(typename Layer::Options options, Initializer& initializer) {
    return add(std::make_unique<Layer>(options, initializer));
  }
  template <typename Layer>
  Layer& add(typename Layer::Options options) {
    return add(std::make_unique<Layer>(options));
  }

  /// Makes a Layer from the arguments and appends it.
  template <typename Layer, typename... Args>
  Layer& add(Args&&... args) {
    return add(std::make_unique<Layer>(std::forward<Args>(args)...));
  }

  std::size_t size() const { return layers_.size(); }
  Module& operator[](std::size_t index) { return *layers_.at(index); }
  const Module& operator[](std::size_t index) const { return *layers_.at(index); }

  Tensor forward(const Tensor& input) override;
  std::string describe() const override;

  /// Calls modules [begin, end), two at once where fusion.h has a row for them.
  Tensor run(std::size_t begin, std::size_t end, const Tensor& input);

 private:
  void append(std::string name, std::unique_ptr<Module> layer);

  std::vector<std::unique_ptr<Module>> layers_;
  int next_slot_ = 0;
};

}  // namespace tandem::layers

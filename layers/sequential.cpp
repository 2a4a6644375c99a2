// Modules one after another.
#include "tandem/layers/sequential.h"

#include "tandem/layers/fusion.h"

namespace tandem::layers {

Tensor Sequential::forward(const Tensor& input) { return run(0, layers_.size(), input); }

Tensor Sequential::run(std::size_t begin, std::size_t end, const Tensor& input) {
  Tensor output = input;
  for (std::size_t i = begin; i < end; ++i) {
    const Fusion* const fusion = i + 1 < end ? find_fusion(*layers_[i], *layers_[i + 1], output) : nullptr;
    output = fusion != nullptr ? fusion->run(*layers_[i], *layers_[i + 1], output) : (*layers_[i])(output);
    if (fusion != nullptr) ++i;
  }
  return output;
}

std::string Sequential::describe() const { return fmt::format("Sequential of {}", layers_.size()); }

void Sequential::append(std::string name, std::unique_ptr<Module> layer) {
  next_slot_ += layer->sequential_slots();
  register_module(std::move(name), *layer);
  layers_.push_back(std::move(layer));
}

}  // namespace tandem::layers

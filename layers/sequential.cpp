// Modules one after another.
#include "layers/sequential.h"

namespace tandem::layers {

Tensor Sequential::forward(const Tensor& input) {
  Tensor output = input;
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const Tensor both = i + 1 < layers_.size() ? layers_[i]->call_with(*layers_[i + 1], output) : Tensor();
    output = both.defined() ? both : (*layers_[i])(output);
    if (both.defined()) ++i;
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

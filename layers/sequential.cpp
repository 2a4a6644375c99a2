// Modules one after another.
#include "layers/sequential.h"

namespace tandem::layers {

Tensor Sequential::forward(const Tensor& input) { return run(0, layers_.size(), input); }

Tensor Sequential::call_with(Module& next, const Tensor& input) {
  if (!fuses(next, input)) return {};
  auto& after = static_cast<Sequential&>(next);
  const Tensor both =
      guarded([&] { return layers_.back()->call_with(*after.layers_.front(), run(0, layers_.size() - 1, input)); });
  return after.guarded([&] { return after.run(1, after.layers_.size(), both); });
}

bool Sequential::fuses_with(const Module& next, const Tensor& input) const {
  const auto* const after = dynamic_cast<const Sequential*>(&next);
  return after != nullptr && !layers_.empty() && !after->layers_.empty() &&
         layers_.back()->fuses(*after->layers_.front(), input);
}

Tensor Sequential::run(std::size_t begin, std::size_t end, const Tensor& input) {
  Tensor output = input;
  for (std::size_t i = begin; i < end; ++i) {
    const Tensor both = i + 1 < end ? layers_[i]->call_with(*layers_[i + 1], output) : Tensor();
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

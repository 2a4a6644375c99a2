// Modules one after another.
#include "tandem/layers/sequential.h"

#include "tandem/layers/fusion.h"

namespace tandem::layers {

Tensor Sequential::forward(const Tensor& input) { return run(0, size(), input); }

Tensor Sequential::run(std::size_t begin, std::size_t end, const Tensor& input) {
  std::vector<std::reference_wrapper<Module>> all;
  all.reserve(end - begin);
  for (std::size_t i = begin; i < end; ++i) all.emplace_back(*layers()[i]);
  return call_all(all, input);
}

std::string Sequential::describe() const { return fmt::format("Sequential of {}", size()); }

}  // namespace tandem::layers

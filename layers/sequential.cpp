// Modules one after another.
#include "tandem/layers/sequential.h"

#include "tandem/layers/fusion.h"

namespace tandem::layers {

Tensor Sequential::forward(const Tensor& input) { return run(0, size(), input); }

Tensor Sequential::run(std::size_t begin, std::size_t end, const Tensor& input) {
  Tensor output = input;
  for (std::size_t i = begin; i < end; ++i) {
    const Fusion* const fusion = i + 1 < end ? find_fusion(*layers()[i], *layers()[i + 1], output) : nullptr;
    output = fusion != nullptr ? fusion->run(*layers()[i], *layers()[i + 1], output) : (*layers()[i])(output);
    if (fusion != nullptr) ++i;
  }
  return output;
}

std::string Sequential::describe() const { return fmt::format("Sequential of {}", size()); }

}  // namespace tandem::layers

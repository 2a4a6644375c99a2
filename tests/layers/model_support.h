// What tests of the networks share.
#pragma once

#include "tandem/core/random.h"
#include "tandem/core/tensor.h"
#include "tandem/layers/module.h"

#include <set>
#include <string>
#include <vector>

namespace tandem::test {

/// Normally distributed, channels_last.
inline Tensor random_images(const Shape& shape) {
  const RandomKey key{.seed = 9, .stream = RandomStream::test};
  std::vector<float> values(static_cast<std::size_t>(element_count(shape)));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = key.normal(i);
  return Tensor::from(values, shape, Layout::channels_last);
}

inline std::set<std::string> weights_of(const layers::Module& module) {
  std::set<std::string> names;
  for (const auto& [name, parameter] : module.named_parameters()) {
    if (name.ends_with(".weight")) names.insert(name.substr(0, name.size() - 7) + to_string(parameter.shape()));
  }
  return names;
}

}  // namespace tandem::test

// What tests of the networks share.
#pragma once

#include "tandem/core/shape.h"
#include "tandem/layers/module.h"

#include <set>
#include <string>

namespace tandem::test {

/// Of each parameter that is called ".weight": the name before that, and the shape.
inline std::set<std::string> weights_of(const layers::Module& module) {
  std::set<std::string> names;
  for (const auto& [name, parameter] : module.named_parameters()) {
    if (name.ends_with(".weight")) names.insert(name.substr(0, name.size() - 7) + to_string(parameter.shape()));
  }
  return names;
}

}  // namespace tandem::test

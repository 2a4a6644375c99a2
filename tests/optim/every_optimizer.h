// Every optimizer of the table: for what must hold of all.
#pragma once

#include "tandem/optim/by_name.h"
#include "tests/optim/optimizer_support.h"

#include <memory>

namespace tandem::test {

/// One of them on these parameters, with the defaults of its row.
inline std::unique_ptr<optim::Optimizer> make(const optim::OptimizerEntry& entry, std::vector<Tensor> parameters) {
  return optim::make_optimizer(std::move(parameters), {.name = std::string(entry.name)});
}

/// Steps `first` to `last`, with the gradients of set_gradient().
inline void run_steps(optim::Optimizer& optimizer, std::uint32_t first, std::uint32_t last) {
  for (std::uint32_t step = first; step <= last; ++step) {
    for (const Tensor& parameter : optimizer.parameters()) set_gradient(parameter, step);
    optimizer.step();
  }
}

}  // namespace tandem::test

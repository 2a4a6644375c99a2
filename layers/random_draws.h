// Whether a model draws random numbers.
#pragma once

#include <cstdint>

namespace tandem::layers {

/// How many keys this thread has taken from random states (RandomState), ever: the same before and behind a forward
/// pass that draws nothing.
std::int64_t random_draws();

}  // namespace tandem::layers

// Steps that all ranks do, or none.
#pragma once

#include "tandem/comm/backends/backend.h"

#include <functional>
#include <string>

namespace tandem::comm {

/// What the first rank says whose `step` throws, with its number unless all say the same; "" where all have done it.
/// The same on all ranks. Collective.
std::string obstacle_to(Backend& backend, const std::function<void()>& step);

}  // namespace tandem::comm

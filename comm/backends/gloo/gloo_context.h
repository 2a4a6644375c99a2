// Connections of the Gloo library between ranks. Internal to comm/backends/gloo.
#pragma once

#include "tandem/comm/backends/backend.h"

#include <memory>

namespace gloo {
class Context;
}

namespace tandem::comm {

/// One between all ranks of `meeting`, whose collectives have no time limit. Collective.
std::shared_ptr<gloo::Context> connect_gloo(Backend& meeting);

}  // namespace tandem::comm

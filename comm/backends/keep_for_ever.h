#pragma once

#include <memory>

namespace tandem::comm::detail {

/// Nothing destroys `used` any more, and leak checkers find it: memory of an operation that was given up, which a
/// library or a device may still read and write until the process ends. From any thread.
void keep_for_ever(std::shared_ptr<const void> used);

}  // namespace tandem::comm::detail

// Lines for the user about what runs: that something slower than expected does, and why.
#pragma once

#include <functional>
#include <string>

namespace tandem::kernels {

/// Gives a line to the listener, once for each text.
void notice(const std::string& line);

/// Who gets lines from now on, those that were given before as well where they come up again; a null one ignores them.
/// Several threads may call it at once. At the start lines go to stderr, after "note: ".
void listen_to_notices(std::function<void(const std::string& line)> listener);

/// The listener that there is at the start.
void print_notice(const std::string& line);

}  // namespace tandem::kernels

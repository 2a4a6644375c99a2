// A look at each profiler range as it begins, for tests that must do something at a named point of the work.
#pragma once

#include <string>

namespace tandem::detail {

/// Called with the name of each range that begins, in the thread that begins it, in all of them at once.
using RangeObserver = void (*)(const std::string& name);

/// From now on `observer` is called; null: nobody any more. Without an observer, ranges cost what they did.
void observe_ranges(RangeObserver observer);

}  // namespace tandem::detail

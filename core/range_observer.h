// A look at each profiler range as it begins: for tests that must do something at a named point of the work, and for
// whoever shows what a thread is in.
#pragma once

#include <string>
#include <string_view>

namespace tandem::detail {

/// Called with the name of each range that begins, in the thread that begins it, in all of them at once.
using RangeObserver = void (*)(const std::string& name);

/// From now on `observer` is called; null: nobody any more. Without an observer, ranges cost what they did.
void observe_ranges(RangeObserver observer);

/// Called with the name of the innermost range whenever that changes, "" outside of any, and the dotted name of the
/// module for which it began ("": of none), in the thread whose it is.
using RangeFollower = void (*)(std::string_view name, std::string_view module);

/// From now on, and for good, `follower` is called: one in a process.
void follow_ranges(RangeFollower follower);

}  // namespace tandem::detail

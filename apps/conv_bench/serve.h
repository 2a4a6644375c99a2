// Timing on request, for a script that lets several programs take turns.
#pragma once

#include "apps/conv_bench/settings.h"

namespace tandem::conv_bench {

/// Writes one line of JSON with the cases (layers, batches and dtypes) and implementations, then answers requests on
/// stdin, one a line: "time CASE PASS IMPL RUNS", with CASE an index into the cases, by {"seconds": of so many runs
/// after each other (on a GPU: the mean of them, between two events), "cpu_seconds": processor time of all threads per
/// run}; "quit" by ending. Each implementation is verified before its first run of a case; a wrong one ends the program
/// by an Error.
void serve(const BenchSettings& settings);

}  // namespace tandem::conv_bench

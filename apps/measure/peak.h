// What the machine's multiply-add units can do at most.
#pragma once

namespace tandem::apps {

/// f32 operations per second of `threads` threads that do nothing but independent multiply-adds in vector registers:
/// the best of many short rounds.
double measure_peak_flops(int threads);

}  // namespace tandem::apps

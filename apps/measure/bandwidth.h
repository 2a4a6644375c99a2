// What the machine's memory moves at most.
#pragma once

namespace tandem::apps {

/// Bytes per second, read and written counted alike, of `threads` threads that copy from one large array to another
/// past the caches: the best of some rounds.
double measure_bandwidth(int threads);

}  // namespace tandem::apps

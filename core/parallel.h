// Loops over all cores of this process: OpenMP where the compiler has it, one thread otherwise.
#pragma once

#include <algorithm>
#include <cstdint>
#include <exception>

#ifdef _OPENMP
#include <omp.h>
#endif

namespace tandem {

/// Threads that parallel_for may use.
inline int num_threads() {
#ifdef _OPENMP
  return omp_get_max_threads();
#else
  return 1;
#endif
}

/// Sets num_threads() for this process; without OpenMP it stays 1.
inline void set_num_threads([[maybe_unused]] int threads) {
#ifdef _OPENMP
  omp_set_num_threads(std::max(threads, 1));
#endif
}

/// Calls `body(begin, end)` on consecutive parts of [0, count), one part per thread, each of at least `grain`
/// elements. Parts differ with the number of threads: a body must not let its result depend on where they start.
/// The first exception thrown by a part is rethrown.
template <typename Body>
void parallel_for(std::int64_t count, [[maybe_unused]] std::int64_t grain, Body&& body) {
  if (count <= 0) return;
#ifdef _OPENMP
  const std::int64_t most = (count + std::max<std::int64_t>(grain, 1) - 1) / std::max<std::int64_t>(grain, 1);
  const auto threads = static_cast<int>(std::min<std::int64_t>(omp_in_parallel() ? 1 : num_threads(), most));
  if (threads > 1) {
    std::exception_ptr error;
#pragma omp parallel num_threads(threads)
    {
      const std::int64_t team = omp_get_num_threads();
      const std::int64_t part = omp_get_thread_num();
      try {
        body(count * part / team, count * (part + 1) / team);
      } catch (...) {
#pragma omp critical(tandem_parallel_for_error)
        if (!error) error = std::current_exception();
      }
    }
    if (error) std::rethrow_exception(error);
    return;
  }
#endif
  body(std::int64_t{0}, count);
}

}  // namespace tandem

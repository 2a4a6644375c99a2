// Loops over the cores of this process, by threads that the library keeps for them.
//
// Every thread that calls parallel_for has a crew of its own, started when it is first needed and kept until that
// thread ends. A member of it that waits for work spins for some microseconds and then sleeps, and what no member has
// begun when the caller is done with its own part, the caller does itself: on a machine whose cores are busy with
// other programs nobody burns the time slices that the others need, or waits for a thread that does not run.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

namespace tandem {

/// No more than these are ever used.
inline constexpr int kMostThreads = 4096;

/// The first number of the environment variable OMP_NUM_THREADS, a number or several with commas between; 0 where it is
/// not set, or no number above 0.
int threads_asked_for();

/// Threads that parallel_for may use, the caller among them. Until set_num_threads: threads_asked_for() if that is
/// above 0, else the hardware threads that this process may run on.
int num_threads();

/// Sets num_threads() for the whole process, from its next parallel_for on; less than 1 counts as 1. May be called by
/// any thread at any time.
void set_num_threads(int threads);

namespace detail {

/// A function of the part's number, and what it is called on.
struct PartFunction {
  void* body;
  void (*call)(void* body, std::int64_t part);
};

/// True in a part of a parallel_for that has several.
bool in_parallel();

/// Calls function(part) once for each part in [0, parts), by up to that many threads; the caller does part 0. Returns
/// when all are done, and rethrows the first exception.
void run_parts(std::int64_t parts, PartFunction function);

}  // namespace detail

/// Calls `body(begin, end)` on consecutive parts of [0, count), one part per thread, each of at least `grain`
/// elements. Parts differ with the number of threads: a body must not let its result depend on where they start.
/// A parallel_for inside a part is done on the spot. The first exception thrown by a part is rethrown when all are
/// done. In a process made by fork() it works as in any other; fork() inside a part is not supported.
/// Example:
///     void square(float* values, std::int64_t count) {
///       parallel_for(count, 4096, [&](std::int64_t begin, std::int64_t end) {
///         for (std::int64_t i = begin; i < end; ++i) values[i] *= values[i];
///       });
///     }
///     float values[] = {1, 2, 3};
///     square(values, 3);
///     const float last = values[2];  // 9
template <typename Body>
void parallel_for(std::int64_t count, std::int64_t grain, Body&& body) {
  if (count <= 0) return;
  grain = std::max<std::int64_t>(grain, 1);
  const std::int64_t most = count / grain + (count % grain != 0);
  const std::int64_t parts = most == 1 || detail::in_parallel() ? 1 : std::min<std::int64_t>(num_threads(), most);
  if (parts == 1) {
    body(std::int64_t{0}, count);
    return;
  }
  const auto run_part = [&body, count, parts](std::int64_t part) {
    body(count * part / parts, count * (part + 1) / parts);
  };
  using RunPart = std::remove_reference_t<decltype(run_part)>;
  detail::run_parts(parts, {const_cast<void*>(static_cast<const void*>(&run_part)),
                            [](void* function, std::int64_t part) { (*static_cast<RunPart*>(function))(part); }});
}

}  // namespace tandem

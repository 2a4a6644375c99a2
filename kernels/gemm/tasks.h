// Independent tasks of uneven cost, handed to the threads one by one.
#pragma once

#include "tandem/core/parallel.h"

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace tandem::kernels {

/// How many workers so many tasks should have.
inline std::int64_t workers_for(std::int64_t tasks) { return std::min<std::int64_t>(tasks, num_threads()); }

/// Calls body(task, worker) for every task in [0, tasks), worker < workers; which worker gets a task is left to chance,
/// so a result must not depend on `worker`, which is there to choose a scratch buffer.
template <typename Body>
void for_each_task(std::int64_t tasks, std::int64_t workers, Body&& body) {
  std::atomic<std::int64_t> next{0};
  parallel_for(workers, 1, [&](std::int64_t worker, std::int64_t) {
    for (std::int64_t task = next++; task < tasks; task = next++) body(task, worker);
  });
}

/// The same for tasks without scratch buffers.
template <typename Body>
void for_each_task(std::int64_t tasks, Body&& body) {
  for_each_task(tasks, workers_for(tasks), body);
}

}  // namespace tandem::kernels

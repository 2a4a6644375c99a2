// Independent tasks of uneven cost, handed to the threads one by one.
#pragma once

#include "core/parallel.h"

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace tandem::kernels {

/// Calls body(task, worker) for every task in [0, tasks), worker < num_threads(); which worker gets a task is left to
/// chance, so a result must not depend on `worker`, which is there to choose a scratch buffer.
template <typename Body>
void for_each_task(std::int64_t tasks, Body&& body) {
  std::atomic<std::int64_t> next{0};
  parallel_for(std::min<std::int64_t>(tasks, num_threads()), 1, [&](std::int64_t worker, std::int64_t) {
    for (std::int64_t task = next++; task < tasks; task = next++) body(task, worker);
  });
}

}  // namespace tandem::kernels

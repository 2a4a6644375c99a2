// Locks in processes that are made by fork().
#pragma once

#include <mutex>

namespace tandem {

/// From now on fork() waits until nobody else holds `mutex`, so that it is free in the new process as well: threads
/// that might hold it do not come along. `mutex` must never go, and nobody may take another such mutex while holding
/// it. Does nothing where there is no fork().
void hold_during_fork(std::mutex& mutex);

/// From now on each process made by fork() calls `body` first, while such mutexes are held. Does nothing where there is
/// no fork().
void call_after_fork(void (*body)());

}  // namespace tandem

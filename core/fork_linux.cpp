// Handlers of fork().
#include "tandem/core/fork.h"

#include <pthread.h>

#include <algorithm>
#include <vector>

namespace tandem {

namespace {

/// The mutex of this list, and what it lists. Never destroyed: a process may fork while it ends.
struct Held {
  std::mutex mutex;
  std::vector<std::mutex*> mutexes;

  void lock() {
    mutex.lock();
    for (std::mutex* const one : mutexes) one->lock();
  }
  void unlock() {
    std::for_each(mutexes.rbegin(), mutexes.rend(), [](std::mutex* one) { one->unlock(); });
    mutex.unlock();
  }
};

Held& held() {
  static Held& all = *new Held;
  return all;
}

}  // namespace

void hold_during_fork(std::mutex& mutex) {
  static const int registered = pthread_atfork([] { held().lock(); }, [] { held().unlock(); }, [] { held().unlock(); });
  static_cast<void>(registered);
  const std::scoped_lock lock(held().mutex);
  held().mutexes.push_back(&mutex);
}

}  // namespace tandem

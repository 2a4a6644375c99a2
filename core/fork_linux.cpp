// Handlers of fork().
#include "tandem/core/fork.h"

#include <pthread.h>

#include <algorithm>
#include <vector>

namespace tandem {

namespace {

/// What is to be held, and called; the mutex is these lists'. Never destroyed: a process may fork while it ends.
struct Held {
  std::mutex mutex;
  std::vector<std::mutex*> mutexes;
  std::vector<void (*)()> bodies;

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

void follow_forks() {
  const auto begin_in_child = [] {
    for (const auto body : held().bodies) body();
    held().unlock();
  };
  static const int registered = pthread_atfork([] { held().lock(); }, [] { held().unlock(); }, begin_in_child);
  static_cast<void>(registered);
}

}  // namespace

void hold_during_fork(std::mutex& mutex) {
  follow_forks();
  const std::scoped_lock lock(held().mutex);
  held().mutexes.push_back(&mutex);
}

void call_after_fork(void (*body)()) {
  follow_forks();
  const std::scoped_lock lock(held().mutex);
  held().bodies.push_back(body);
}

}  // namespace tandem

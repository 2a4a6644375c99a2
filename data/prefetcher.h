// Makes numbered items ahead of their use, in background threads.
#pragma once

#include "tandem/core/error.h"

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace tandem::data {

/// Calls `make(0)`, ..., `make(count - 1)` in `threads` background threads and hands the results out by next() in this
/// order, whichever was ready first. At most `depth` items beyond the ones taken are in work or waiting. With 0 threads
/// next() makes its item itself. One thread calls next(). The destructor stops the threads after the items they are at.
/// Example:
///     Prefetcher<int> prefetcher(4, 2, 3, [](std::int64_t number) { return static_cast<int>(number * number); });
///     std::vector<int> items;
///     while (const std::optional<int> item = prefetcher.next()) items.push_back(*item);
///     const std::vector<int> squares = items;  // {0, 1, 4, 9}
template <typename Item>
class Prefetcher {
 public:
  /// Makes the item of this number; called in background threads.
  using Make = std::function<Item(std::int64_t)>;

  /// Throws Error unless count >= 0, threads >= 0 and depth >= 1.
  Prefetcher(std::int64_t count, int threads, int depth, Make make) : count_(count), make_(std::move(make)) {
    require(count >= 0 && threads >= 0 && depth >= 1, "prefetcher: cannot make {} items with {} threads, {} ahead",
            count, threads, depth);
    slots_.resize(static_cast<std::size_t>(depth));
    const auto useful = std::min<std::int64_t>({threads, depth, count});
    synchronous_ = useful == 0;
    try {
      for (std::int64_t i = 0; i < useful; ++i) threads_.emplace_back([this] { work(); });
    } catch (...) {
      stop();
      throw;
    }
  }

  ~Prefetcher() { stop(); }
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  /// The next item; nothing after the last one. Rethrows what `make` threw for this item, and nothing follows then.
  std::optional<Item> next() {
    if (taken_ == count_) return std::nullopt;
    if (synchronous_) {
      const std::int64_t number = std::exchange(taken_, count_);  // nothing follows an exception
      std::optional<Item> item = make_(number);
      taken_ = number + 1;
      return item;
    }
    std::unique_lock lock(mutex_);
    Slot& slot = slot_of(taken_);
    changed_.wait(lock, [&] { return slot.item.has_value() || slot.error; });
    if (slot.error) {
      taken_ = count_;
      stopping_ = true;
      changed_.notify_all();
      std::rethrow_exception(slot.error);
    }
    std::optional<Item> item = std::exchange(slot.item, std::nullopt);
    ++taken_;
    changed_.notify_all();
    return item;
  }

 private:
  struct Slot {
    std::optional<Item> item;
    std::exception_ptr error;
  };

  Slot& slot_of(std::int64_t number) { return slots_[static_cast<std::size_t>(number) % slots_.size()]; }

  void work() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] {
        return stopping_ || started_ == count_ || started_ < taken_ + static_cast<std::int64_t>(slots_.size());
      });
      if (stopping_ || started_ == count_) return;
      const std::int64_t number = started_++;
      lock.unlock();
      Slot made;
      try {
        made.item.emplace(make_(number));
      } catch (...) {
        made.error = std::current_exception();
      }
      lock.lock();
      slot_of(number) = std::move(made);
      changed_.notify_all();
    }
  }

  void stop() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    for (auto& thread : threads_) thread.join();
    threads_.clear();
  }

  std::int64_t count_;
  Make make_;
  bool synchronous_ = false;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Slot> slots_;  // item n waits in slot n mod depth
  std::int64_t started_ = 0, taken_ = 0;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace tandem::data

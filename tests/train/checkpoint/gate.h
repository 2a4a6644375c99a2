// A disk that is as slow as a test wants it: fsync() of this program, in test_slow_disk.cpp, waits for a gate.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

namespace tandem::test {

/// What all writes of files wait for: the disk is done with them once it is open.
class Gate {
 public:
  void close() { set(false); }
  void open() { set(true); }

  /// Does not wait for ever: who closed the gate may be waiting for this.
  void pass() {
    constexpr std::chrono::seconds kLongest(60);
    std::unique_lock lock(mutex_);
    is_reached_ = true;
    changed_.notify_all();
    if (!changed_.wait_for(lock, kLongest, [&] { return is_open_; })) was_waited_for_ = is_open_ = true;
  }

  /// Returns once somebody has come to it since it was closed.
  void wait_until_reached() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return is_reached_; });
  }

  /// Whether somebody waited for the disk who should have opened the gate.
  bool was_waited_for() {
    const std::lock_guard lock(mutex_);
    return was_waited_for_;
  }

 private:
  void set(bool is_open) {
    const std::lock_guard lock(mutex_);
    is_open_ = is_open;
    is_reached_ = is_reached_ && is_open;
    was_waited_for_ = was_waited_for_ && is_open;
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_open_ = true, is_reached_ = false, was_waited_for_ = false;
};

Gate& gate();

}  // namespace tandem::test

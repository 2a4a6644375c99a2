// Blocking operations as works: a thread that carries them out.
#pragma once

#include "tandem/comm/work.h"

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

namespace tandem::comm {

/// How far an operation is that another thread carries out.
class OperationState {
 public:
  void complete(std::exception_ptr fault = nullptr);
  /// Throws what the operation failed by.
  bool is_complete();
  void wait();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool complete_ = false;
  std::exception_ptr fault_;
};

/// The work of such an operation. Dropping it changes nothing for the operation.
std::unique_ptr<Work> work_of(std::shared_ptr<OperationState> state);

/// Carries out operations one after another, in the order in which they come. For use by one thread.
/// Example:
///     OperationThread thread;
///     int sum = 0;
///     const auto first = thread.start([&sum] { sum += 1; });
///     thread.run([&sum] { sum *= 2; });
///     const bool is_done = first->poll();  // true, and sum is 2
class OperationThread {
 public:
  OperationThread() = default;
  /// Returns once the operation that it is at is done; those behind it never begin, and their works throw Error.
  ~OperationThread();
  OperationThread(const OperationThread&) = delete;
  OperationThread& operator=(const OperationThread&) = delete;

  /// Behind all that has been started. What it throws is thrown by the work's poll() and waits.
  std::unique_ptr<Work> start(std::function<void()> operation);
  /// The same to its end: by the calling thread, where nothing is under way.
  void run(const std::function<void()>& operation);
  bool is_idle();

 private:
  struct Queued {
    std::function<void()> operation;
    std::shared_ptr<OperationState> state;
  };

  void work();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Queued> queue_;
  bool busy_ = false, ends_ = false;
  std::thread thread_;  // from the first operation on
};

}  // namespace tandem::comm

// Works that move on while their rank computes: a thread of their own, and who may be in the backend when.
#pragma once

#include "tandem/comm/work.h"

#include <atomic>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace tandem::comm {

/// Polls works as long as some are under way, and sleeps while there are none. The backend that the works are of is for
/// one thread at a time: who uses it, or a work that add() has not got, holds an Entry, and the thread keeps away
/// meanwhile. It never waits within the backend, and pauses outside. Loops that it comes to are done on the spot
/// (SerialScope). For use by one thread. Example:
///     #include "tandem/comm/backends/operation_thread.h"
///     bool is_done_meanwhile(OperationThread& operations) {
///       ProgressThread progress(false);
///       const auto work = progress.add([&] { return operations.start([] {}); });  // a work that needs no help
///       return work->wait_for(std::chrono::seconds(1));
///     }
class ProgressThread {
 public:
  /// `many_threads`: there are more threads than cores, so that looking again at once holds up others. Throws Error
  /// where the system gives no thread.
  explicit ProgressThread(bool many_threads);
  /// Returns as soon as the thread is out of the backend. Works that are still under way go on in their own polls and
  /// waits.
  ~ProgressThread();
  ProgressThread(const ProgressThread&) = delete;
  ProgressThread& operator=(const ProgressThread&) = delete;

  /// A work, and how far it is.
  struct Item {
    std::unique_ptr<Work> work;
    std::atomic<bool> ended = false;  // the thread is done with it
    std::exception_ptr fault = {};    // why it failed; not written after `ended`

    /// Whether it has ended now.
    bool poll() noexcept;
  };

  /// What the thread and the works have in common.
  class Shared {
   public:
    /// In a process made by fork() there is no thread, and it may have held the lock.
    bool is_in_its_process() const;
    void begin_entry();
    void end_entry() noexcept;
    /// For who holds an Entry.
    void add(Item& item) { under_way_.push_back(&item); }
    void remove(const Item& item) { std::erase(under_way_, &item); }

   private:
    friend class ProgressThread;
    void work(bool many_threads);
    bool move_on();

    std::mutex mutex_;
    std::condition_variable changed_;
    std::atomic<int> entries_ = 0;
    std::vector<Item*> under_way_;  // by the thread: with the lock, while there is no entry
    bool ends_ = false;
    long process_ = 0;
  };

  /// While it lives, the thread is not in the backend. May be within another one. Throws Error in a process that was
  /// made by fork().
  class Entry {
   public:
    explicit Entry(Shared& shared) : shared_(shared) { shared_.begin_entry(); }
    ~Entry() { shared_.end_entry(); }
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;

   private:
    Shared& shared_;
  };
  Entry enter() { return Entry(*shared_); }
  /// Whether no work is under way.
  bool is_idle() {
    const Entry inside(*shared_);
    return shared_->under_way_.empty();
  }

  /// The work that `start` begins, within an Entry, from then on moved on by the thread as well. What the work fails by
  /// is thrown by its poll() and waits.
  template <typename Start>
  std::unique_ptr<Work> add(Start&& start) {
    const Entry inside(*shared_);
    return keep(start());
  }

 private:
  std::unique_ptr<Work> keep(std::unique_ptr<Work> work);

  std::shared_ptr<Shared> shared_;
  std::thread thread_;
};

}  // namespace tandem::comm

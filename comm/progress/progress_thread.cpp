// The thread, the turns that it takes with its caller, and the works.
#include "tandem/comm/progress/progress_thread.h"

#include "tandem/comm/backends/keep_for_ever.h"
#include "tandem/core/error.h"
#include "tandem/core/serial_scope.h"

#include <unistd.h>

#include <memory>
#include <system_error>
#include <utility>

namespace tandem::comm {

namespace {

using Item = ProgressThread::Item;
using Shared = ProgressThread::Shared;
using Entry = ProgressThread::Entry;

class ProgressWork final : public Work {
 public:
  /// Within an Entry.
  ProgressWork(std::shared_ptr<Shared> shared, std::unique_ptr<Work> work) : shared_(std::move(shared)) {
    item_.work = std::move(work);
    if (!item_.poll()) shared_->add(item_);
  }
  ~ProgressWork() override {
    if (!shared_->is_in_its_process()) {
      detail::keep_for_ever(std::move(item_.work));
      return;
    }
    const Entry inside(*shared_);
    shared_->remove(item_);
    item_.work.reset();
  }
  ProgressWork(const ProgressWork&) = delete;
  ProgressWork& operator=(const ProgressWork&) = delete;

  bool poll() override {
    if (!has_ended()) {
      const Entry inside(*shared_);
      if (!has_ended() && item_.poll()) shared_->remove(item_);
    }
    return is_complete();
  }

  /// The thread keeps away: the work's own wait is as fast as can be.
  void wait() override {
    if (!has_ended()) {
      const Entry inside(*shared_);
      if (!has_ended()) wait_inside();
    }
    is_complete();
  }

  bool join(const Stream& stream) override {
    if (has_ended()) return false;  // and wait() returns at once
    const Entry inside(*shared_);
    return !has_ended() && item_.work->join(stream);
  }

 private:
  void wait_inside() {
    try {
      item_.work->wait();
    } catch (...) {
      item_.fault = std::current_exception();
    }
    item_.ended.store(true, std::memory_order_release);
    shared_->remove(item_);
  }

  bool has_ended() const { return item_.ended.load(std::memory_order_acquire); }
  bool is_complete() const {
    if (!has_ended()) return false;
    if (item_.fault) std::rethrow_exception(item_.fault);
    return true;
  }

  std::shared_ptr<Shared> shared_;
  Item item_;
};

}  // namespace

bool ProgressThread::Item::poll() noexcept {
  bool has_ended = true;
  try {
    has_ended = work->poll();
  } catch (...) {
    fault = std::current_exception();
  }
  if (has_ended) ended.store(true, std::memory_order_release);
  return has_ended;
}

bool ProgressThread::Shared::is_in_its_process() const { return process_ == getpid(); }

void ProgressThread::Shared::begin_entry() {
  require(is_in_its_process(),
          "a process group with a progress thread is for the process that made it, not for one made by fork()");
  ++entries_;  // the thread begins no look at the works any more
  const std::scoped_lock end_of_its_look(mutex_);
}

void ProgressThread::Shared::end_entry() noexcept {
  const std::scoped_lock lock(mutex_);
  if (--entries_ == 0 && !under_way_.empty()) changed_.notify_one();
}

void ProgressThread::Shared::work(bool many_threads) {
  const SerialScope alone;
  Patience patience(many_threads);
  std::unique_lock lock(mutex_);
  while (true) {
    const auto has_turn = [&] { return entries_ == 0 && !under_way_.empty(); };
    if (!ends_ && !has_turn()) {
      changed_.wait(lock, [&] { return ends_ || has_turn(); });
      patience.pause(true);  // begins anew
    }
    if (ends_) return;
    const bool moved = move_on();
    lock.unlock();
    patience.pause(moved);
    lock.lock();
  }
}

/// Whether anything moved.
bool ProgressThread::Shared::move_on() {
  bool moved = false;
  std::erase_if(under_way_, [&](Item* item) {
    const std::int64_t before = item->work->moves();
    const bool has_ended = item->poll();
    moved = moved || has_ended || item->work->moves() != before;
    return has_ended;
  });
  return moved;
}

ProgressThread::ProgressThread(bool many_threads) : shared_(std::make_shared<Shared>()) {
  shared_->process_ = getpid();
  try {
    thread_ = std::thread([shared = shared_, many_threads] { shared->work(many_threads); });
  } catch (const std::system_error& error) {
    fail("the system gives no progress thread: {}; let works move on by polls, or raise its limits", error.what());
  }
}

ProgressThread::~ProgressThread() {
  if (!shared_->is_in_its_process()) {
    // It did not come along: its handle is neither joined nor detached, and what it slept on never says that nobody
    // does.
    std::construct_at(&thread_);
    detail::keep_for_ever(shared_);
    return;
  }
  {
    const std::scoped_lock lock(shared_->mutex_);
    shared_->ends_ = true;
    shared_->changed_.notify_one();
  }
  thread_.join();
}

std::unique_ptr<Work> ProgressThread::keep(std::unique_ptr<Work> work) {
  return std::make_unique<ProgressWork>(shared_, std::move(work));
}

}  // namespace tandem::comm

// The queue, its thread and the works.
#include "tandem/comm/backends/operation_thread.h"

#include "tandem/core/error.h"

#include <utility>

namespace tandem::comm {

namespace {

class OperationWork final : public Work {
 public:
  explicit OperationWork(std::shared_ptr<OperationState> state) : state_(std::move(state)) {}
  bool poll() override { return state_->is_complete(); }
  void wait() override { state_->wait(); }

 private:
  std::shared_ptr<OperationState> state_;
};

}  // namespace

void OperationState::complete(std::exception_ptr fault) {
  const std::scoped_lock lock(mutex_);
  complete_ = true;
  fault_ = std::move(fault);
  changed_.notify_all();
}

bool OperationState::is_complete() {
  const std::scoped_lock lock(mutex_);
  if (fault_) std::rethrow_exception(fault_);
  return complete_;
}

void OperationState::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return complete_; });
  if (fault_) std::rethrow_exception(fault_);
}

std::unique_ptr<Work> work_of(std::shared_ptr<OperationState> state) {
  return std::make_unique<OperationWork>(std::move(state));
}

OperationThread::~OperationThread() {
  std::deque<Queued> dropped;
  {
    const std::scoped_lock lock(mutex_);
    ends_ = true;
    dropped.swap(queue_);
    changed_.notify_all();
  }
  for (const Queued& queued : dropped)
    queued.state->complete(std::make_exception_ptr(Error("an operation was given up before it began")));
  if (thread_.joinable()) thread_.join();
}

std::unique_ptr<Work> OperationThread::start(std::function<void()> operation) {
  auto state = std::make_shared<OperationState>();
  {
    const std::scoped_lock lock(mutex_);
    if (!thread_.joinable()) thread_ = std::thread([this] { work(); });
    queue_.push_back({std::move(operation), state});
    changed_.notify_all();
  }
  return work_of(std::move(state));
}

void OperationThread::run(const std::function<void()>& operation) {
  if (is_idle()) return operation();
  start(operation)->wait();
}

bool OperationThread::is_idle() {
  const std::scoped_lock lock(mutex_);
  return queue_.empty() && !busy_;
}

void OperationThread::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return ends_ || !queue_.empty(); });
    if (ends_) return;
    const Queued next = std::move(queue_.front());
    queue_.pop_front();
    busy_ = true;
    lock.unlock();
    std::exception_ptr fault;
    try {
      next.operation();
    } catch (...) {
      fault = std::current_exception();
    }
    lock.lock();
    busy_ = false;  // before its work says so: who waited may run the next operation itself
    lock.unlock();
    next.state->complete(std::move(fault));
    lock.lock();
  }
}

}  // namespace tandem::comm

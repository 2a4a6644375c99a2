// A thread for each rank, and the first error.
#include "tandem/comm/backends/threads/thread_ranks.h"

#include "tandem/comm/transports/threads/thread_network.h"
#include "tandem/core/error.h"

#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace tandem::comm {

namespace {

class FirstError {
 public:
  void keep(std::exception_ptr error) {
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = std::move(error);
  }
  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  std::mutex mutex_;
  std::exception_ptr error_;
};

}  // namespace

void run_thread_ranks(int ranks, const std::function<void(ProcessGroup&)>& body) {
  run_thread_ranks(ranks, {.name = "threads"}, body);
}

void run_thread_ranks(int ranks, const NativeOptions& options, const std::function<void(ProcessGroup&)>& body) {
  require(ranks >= 1, "run_thread_ranks: {} ranks; a group has 1 or more", ranks);
  const ThreadNetwork network;
  const std::vector<int> one_host(static_cast<std::size_t>(ranks), 0);
  FirstError first;
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        ProcessGroup group(make_native_backend(place_of(one_host, rank), one_host, network.transport(rank), options));
        body(group);
      } catch (...) {
        first.keep(std::current_exception());
        network.stop(fmt::format("rank {} ended by an error", rank));
      }
    });
  }
  threads.clear();  // joins
  first.rethrow();
}

}  // namespace tandem::comm

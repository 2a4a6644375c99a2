// A thread for each rank, and the first error.
#include "tandem/comm/backends/threads/thread_ranks.h"

#include "tandem/comm/agreement.h"
#include "tandem/comm/transports/threads/thread_network.h"
#include "tandem/core/error.h"

#include <exception>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
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

namespace {

/// The exception that is being handled, with the rank in front.
std::exception_ptr error_of_rank(int rank) {
  try {
    throw;
  } catch (const AgreedError&) {
    return std::current_exception();
  } catch (const Error& error) {
    return std::make_exception_ptr(Error(fmt::format("rank {}: {}", rank, error.what())));
  } catch (const std::exception& error) {
    return std::make_exception_ptr(std::runtime_error(fmt::format("rank {}: {}", rank, error.what())));
  } catch (...) {
    return std::current_exception();
  }
}

}  // namespace

void run_thread_ranks(int ranks, const NativeOptions& options, const std::function<void(ProcessGroup&)>& body) {
  run_thread_ranks(ranks, options, {.timeout = default_timeout()}, body);
}

void run_thread_ranks(int ranks, const NativeOptions& options, const WatchOptions& watch,
                      const std::function<void(ProcessGroup&)>& body) {
  require(ranks >= 1, "run_thread_ranks: {} ranks; a group has 1 or more", ranks);
  const ThreadNetwork network;
  WatchOptions watching = watch;
  watching.on_fault = [&network](const std::string& text) { network.stop(text); };
  const std::vector<int> one_host(static_cast<std::size_t>(ranks), 0);
  FirstError first;
  const auto run_rank = [&](int rank) {
    try {
      ProcessGroup group(make_native_backend(place_of(one_host, rank), one_host, network.transport(rank), options));
      group.watch(watching);
      body(group);
    } catch (...) {
      first.keep(error_of_rank(rank));
      network.stop(fmt::format("rank {} ended by an error", rank));
    }
  };
  std::vector<std::jthread> threads;
  try {
    for (int rank = 0; rank < ranks; ++rank) threads.emplace_back(run_rank, rank);
  } catch (const std::exception& error) {
    const std::string text =
        fmt::format("the system gives threads to {} of {} ranks: {}; start fewer, or raise its limits", threads.size(),
                    ranks, error.what());
    first.keep(std::make_exception_ptr(Error(text)));
    network.stop(text);  // those that there are wait for the others
  }
  threads.clear();  // joins
  first.rethrow();
}

}  // namespace tandem::comm

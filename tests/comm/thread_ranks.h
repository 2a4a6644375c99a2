// Ranks that are threads of this program and run at the same time: for tests of what a process shares, under
// ThreadSanitizer above all.
#pragma once

#include "tandem/comm/backends/backend.h"
#include "tandem/comm/backends/ring/ring_backend.h"
#include "tandem/comm/process_group.h"
#include "tandem/comm/transports/transport.h"

#include <barrier>
#include <cstring>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <tuple>

namespace tandem::test {

/// What all ranks have in common: mailboxes, and a place to meet.
class ThreadNetwork {
 public:
  explicit ThreadNetwork(int ranks) : barrier_(ranks), gathered_(static_cast<std::size_t>(ranks)) {}

  int size() const { return static_cast<int>(gathered_.size()); }

  void post(int from, int to, int tag, const void* data, std::int64_t bytes) {
    const auto* begin = static_cast<const std::byte*>(data);
    const std::lock_guard lock(mutex_);
    mailboxes_[{from, to, tag}].emplace_back(begin, begin + bytes);
  }

  /// False if no message is there yet.
  bool take(int from, int to, int tag, void* data, std::int64_t bytes) {
    const std::lock_guard lock(mutex_);
    auto& mailbox = mailboxes_[{from, to, tag}];
    if (mailbox.empty()) return false;
    require(static_cast<std::int64_t>(mailbox.front().size()) == bytes, "a message of {} bytes, expected {}",
            mailbox.front().size(), bytes);
    std::memcpy(data, mailbox.front().data(), mailbox.front().size());
    mailbox.pop_front();
    return true;
  }

  void meet() { barrier_.arrive_and_wait(); }

  std::vector<std::string> gather(int rank, std::string_view mine) {
    gathered_[static_cast<std::size_t>(rank)] = mine;
    meet();
    auto all = gathered_;
    meet();
    return all;
  }

  /// For a rank that goes: the others no longer wait for it where they meet.
  void leave() { barrier_.arrive_and_drop(); }

 private:
  std::mutex mutex_;
  std::barrier<> barrier_;
  std::map<std::tuple<int, int, int>, std::deque<std::vector<std::byte>>> mailboxes_;  // from, to, tag
  std::vector<std::string> gathered_;
};

class ThreadTransport final : public comm::Transport {
 public:
  ThreadTransport(ThreadNetwork& network, int rank) : network_(network), rank_(rank) {}

  std::unique_ptr<comm::Transfer> send(int to, int tag, const void* data, std::int64_t bytes) override {
    network_.post(rank_, to, tag, data, bytes);
    return std::make_unique<Arrival>([] { return true; });
  }
  std::unique_ptr<comm::Transfer> receive(int from, int tag, void* data, std::int64_t bytes) override {
    return std::make_unique<Arrival>([=, this, arrived = false]() mutable {
      arrived = arrived || network_.take(from, rank_, tag, data, bytes);
      return arrived;
    });
  }

 private:
  class Arrival final : public comm::Transfer {
   public:
    explicit Arrival(std::function<bool()> poll) : poll_(std::move(poll)) {}
    bool done() override { return poll_(); }

   private:
    std::function<bool()> poll_;
  };

  ThreadNetwork& network_;
  int rank_;
};

/// All but all-reduce, which the ring does.
class ThreadBackend final : public comm::Backend {
 public:
  ThreadBackend(ThreadNetwork& network, int rank) : network_(network), rank_(rank) {}

  std::string_view name() const override { return "threads"; }
  comm::Place place() const override {
    return {.rank = rank_, .size = network_.size(), .local_rank = rank_, .local_size = network_.size()};
  }
  std::unique_ptr<comm::Work> start_all_reduce(const comm::CollectiveBuffer&, comm::ReduceOp) override {
    fail("ranks as threads reduce by the ring");
  }
  void broadcast(void* data, std::int64_t bytes, int root) override {
    const auto size = static_cast<std::size_t>(bytes);
    const auto all = network_.gather(rank_, rank_ == root ? std::string(static_cast<const char*>(data), size) : "");
    std::memcpy(data, all[static_cast<std::size_t>(root)].data(), size);
  }
  void all_gather(const void* mine, std::int64_t bytes, void* all) override {
    auto* into = static_cast<char*>(all);
    for (const std::string& part :
         network_.gather(rank_, {static_cast<const char*>(mine), static_cast<std::size_t>(bytes)})) {
      std::memcpy(into, part.data(), part.size());
      into += part.size();
    }
  }
  std::vector<std::string> all_gather_bytes(std::string_view mine) override { return network_.gather(rank_, mine); }
  void barrier() override { network_.meet(); }

 private:
  ThreadNetwork& network_;
  int rank_;
};

/// Runs `body(group)` in `ranks` threads at once; rethrows the error of the lowest rank that threw. The other ranks
/// must not wait in an all-reduce for one that throws.
inline void run_thread_ranks(int ranks, const std::function<void(comm::ProcessGroup&)>& body) {
  ThreadNetwork network(ranks);
  std::vector<std::exception_ptr> errors(static_cast<std::size_t>(ranks));
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        comm::ProcessGroup group(comm::make_ring_backend(std::make_unique<ThreadBackend>(network, rank),
                                                         std::make_unique<ThreadTransport>(network, rank)));
        body(group);
      } catch (...) {
        errors[static_cast<std::size_t>(rank)] = std::current_exception();
        network.leave();
      }
    });
  }
  threads.clear();
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
}

}  // namespace tandem::test

// Communicators of ranks that are threads of this program and meet in every call, in place of NCCL's. One thread runs
// at a time: the simulated device takes no more.
#pragma once

#include "tandem/comm/backends/nccl/nccl_communicator.h"
#include "tests/comm/copy_bytes.h"

#include <barrier>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace tandem::test {

/// Where the ranks meet, and what they did.
struct Meeting {
  struct Seat {
    std::span<const comm::NcclExchange> exchanges;
    const void* mine = nullptr;
    bool busy = false;  // until is_ready() was asked
    std::vector<std::string> calls;
    std::int64_t bytes_sent = 0;
    std::string error_once_called;  // of is_ready()
    std::string failure;            // of the rank's body
  };

  explicit Meeting(int ranks) : seats(static_cast<std::size_t>(ranks)), barrier(ranks) {}

  Seat& seat(int rank) { return seats[static_cast<std::size_t>(rank)]; }
  int size() const { return static_cast<int>(seats.size()); }

  /// Returns once all ranks have come here.
  void meet() {
    turn.unlock();
    barrier.arrive_and_wait();
    turn.lock();
  }

  std::vector<Seat> seats;
  std::mutex turn;  // held by the rank that runs
  std::barrier<> barrier;
};

class MeetingCommunicator final : public comm::NcclCommunicator {
 public:
  MeetingCommunicator(Meeting& meeting, int rank) : meeting_(meeting), rank_(rank) {}

  bool is_ready() override {
    if (!mine().error_once_called.empty() && !mine().calls.empty()) fail("{}", mine().error_once_called);
    return !std::exchange(mine().busy, false);
  }

  void all_reduce(const void*, void*, std::int64_t count, DType dtype, comm::ReduceOp op, const Stream&) override {
    begin(fmt::format("all_reduce {} {} {}", count, tandem::name_of(dtype), comm::name_of(op)));
  }
  void reduce(const void*, void*, std::int64_t, DType, comm::ReduceOp, int, const Stream&) override { begin("reduce"); }
  void reduce_scatter(const void*, void*, std::int64_t, DType, comm::ReduceOp, const Stream&) override {
    begin("reduce_scatter");
  }
  void broadcast(void*, std::int64_t, int, const Stream&) override { begin("broadcast"); }

  void exchange(std::span<const comm::NcclExchange> exchanges, const Stream& stream) override {
    begin("exchange");
    mine().exchanges = exchanges;
    stream.synchronize();
    meeting_.meet();
    for (int rank = 0; rank < meeting_.size(); ++rank) {
      const auto here = of_rank(exchanges, rank), there = of_rank(meeting_.seat(rank).exchanges, rank_);
      require(here.size() == there.size(), "rank {} has {} exchanges with rank {}, which has {}", rank_, here.size(),
              rank, there.size());
      for (std::size_t i = 0; i < here.size(); ++i) {
        require(here[i].bytes_received == there[i].bytes_sent, "{} bytes meet {}", there[i].bytes_sent,
                here[i].bytes_received);
        copy_bytes(stream, here[i].into, there[i].from, here[i].bytes_received);
        if (rank != rank_) mine().bytes_sent += here[i].bytes_sent;
      }
    }
    stream.synchronize();
    meeting_.meet();
  }

  void all_gather(const void* chunk, std::int64_t bytes, void* all, const Stream& stream) override {
    begin("all_gather");
    mine().mine = chunk;
    stream.synchronize();
    meeting_.meet();
    for (int rank = 0; rank < meeting_.size(); ++rank) {
      void* const into = static_cast<std::byte*>(all) + rank * bytes;
      const void* const from = meeting_.seat(rank).mine;
      if (into != from) copy_bytes(stream, into, from, bytes);
    }
    mine().bytes_sent += (meeting_.size() - 1) * bytes;
    stream.synchronize();
    meeting_.meet();
  }

  void finalize() override {}
  void close() override {}
  void abort() noexcept override { mine().calls.emplace_back("abort"); }

 private:
  Meeting::Seat& mine() { return meeting_.seat(rank_); }

  void begin(std::string call) {
    require(!mine().busy, "{} while the call before is under way", call);
    mine().calls.push_back(std::move(call));
    mine().busy = true;
  }

  static std::vector<comm::NcclExchange> of_rank(std::span<const comm::NcclExchange> exchanges, int rank) {
    std::vector<comm::NcclExchange> result;
    for (const comm::NcclExchange& each : exchanges)
      if (each.rank == rank) result.push_back(each);
    return result;
  }

  Meeting& meeting_;
  int rank_;
};

/// Runs `body(rank)` in a thread per rank. Text of what a rank throws goes to its seat, and the others go on without
/// it.
inline void run_ranks(Meeting& meeting, const std::function<void(int rank)>& body) {
  std::vector<std::jthread> ranks;
  for (int rank = 0; rank < meeting.size(); ++rank) {
    ranks.emplace_back([&, rank] {
      const std::lock_guard turn(meeting.turn);
      try {
        body(rank);
      } catch (const std::exception& error) {
        meeting.seat(rank).failure = error.what();
        meeting.barrier.arrive_and_drop();
      }
    });
  }
}

}  // namespace tandem::test

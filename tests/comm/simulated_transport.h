// Ranks in one process, for tests: messages with delays drawn at random, and a check that memory in use is left alone.
#pragma once

#include "tandem/comm/transports/transport.h"
#include "tandem/core/error.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <list>
#include <map>
#include <random>
#include <string>
#include <tuple>
#include <vector>

namespace tandem::test {

/// The wires between all ranks. A send is read only when its receive takes it, as in a rendezvous, and stays in use
/// until its owner was told that it is done.
class SimulatedNetwork {
 public:
  explicit SimulatedNetwork(unsigned seed) : random_(seed) {}

  std::unique_ptr<comm::Transport> transport_of(int rank) { return std::make_unique<Endpoint>(*this, rank); }
  const std::string& violation() const { return violation_; }
  bool is_idle() const { return uses_.empty(); }
  std::int64_t messages() const { return messages_; }

 private:
  struct Use {
    int rank;
    const std::byte* data;
    std::int64_t bytes;
    bool writes;
    bool delivered = false;
  };
  using UseHandle = std::list<Use>::iterator;
  struct Channel {
    std::deque<UseHandle> sends, receives;
  };

  class SimulatedTransfer final : public comm::Transfer {
   public:
    SimulatedTransfer(SimulatedNetwork& network, Channel& channel, UseHandle use)
        : network_(network), channel_(channel), use_(use) {}
    bool done() override {
      if (finished_) return true;
      if (network_.random_() % 3 == 0) return false;
      network_.deliver(channel_);
      if (!use_->delivered) return false;
      network_.uses_.erase(use_);
      return finished_ = true;
    }

   private:
    SimulatedNetwork& network_;
    Channel& channel_;
    UseHandle use_;
    bool finished_ = false;
  };

  class Endpoint final : public comm::Transport {
   public:
    Endpoint(SimulatedNetwork& network, int rank) : network_(network), rank_(rank) {}
    std::unique_ptr<comm::Transfer> send(int to, int tag, const void* data, std::int64_t bytes) override {
      Channel& channel = network_.channels_[{rank_, to, tag}];
      channel.sends.push_back(network_.use(rank_, data, bytes, false));
      ++network_.messages_;
      return std::make_unique<SimulatedTransfer>(network_, channel, channel.sends.back());
    }
    std::unique_ptr<comm::Transfer> receive(int from, int tag, void* data, std::int64_t bytes) override {
      Channel& channel = network_.channels_[{from, rank_, tag}];
      channel.receives.push_back(network_.use(rank_, data, bytes, true));
      return std::make_unique<SimulatedTransfer>(network_, channel, channel.receives.back());
    }
    std::unique_ptr<comm::Transport> subgroup(std::span<const int>) override { fail("this network has one group"); }

   private:
    SimulatedNetwork& network_;
    int rank_;
  };

  UseHandle use(int rank, const void* data, std::int64_t bytes, bool writes) {
    const auto* begin = static_cast<const std::byte*>(data);
    for (const Use& other : uses_) {
      const bool overlaps = other.rank == rank && begin < other.data + other.bytes && other.data < begin + bytes;
      if (overlaps && (writes || other.writes)) violation_ = "memory of an unfinished message was used again";
    }
    if (bytes == 0) violation_ = "an empty message was sent";
    return uses_.insert(uses_.end(), {rank, begin, bytes, writes});
  }

  void deliver(Channel& channel) {
    while (!channel.sends.empty() && !channel.receives.empty()) {
      const UseHandle from = channel.sends.front(), to = channel.receives.front();
      if (from->bytes != to->bytes) violation_ = "a message is not as long as its receiver expects";
      const auto bytes = static_cast<std::size_t>(std::min(from->bytes, to->bytes));
      std::memcpy(const_cast<std::byte*>(to->data), from->data, bytes);
      from->delivered = to->delivered = true;
      channel.sends.pop_front();
      channel.receives.pop_front();
    }
  }

  std::mt19937 random_;
  std::map<std::tuple<int, int, int>, Channel> channels_;  // from, to, tag
  std::list<Use> uses_;
  std::string violation_;
  std::int64_t messages_ = 0;
};

}  // namespace tandem::test

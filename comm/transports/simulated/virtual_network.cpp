// Events in the order of their times.
#include "tandem/comm/transports/simulated/virtual_network.h"

#include "tandem/core/error.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <queue>
#include <set>
#include <string>
#include <tuple>
#include <utility>

namespace tandem::comm {

namespace {

/// One end of a message, as its rank asked for it. `number` counts them.
struct End {
  std::uint64_t number = 0;
  int from = 0, to = 0, tag = 0;
  const void* source = nullptr;  // of a send
  void* target = nullptr;        // of a receive
  std::int64_t bytes = 0;
  bool done = false;
  bool is_given_up = false;  // its memory may be gone

  std::tuple<int, int, int> address() const { return {from, to, tag}; }
};

/// A message whose two ends have met.
struct Message {
  std::shared_ptr<End> send, receive;
};

enum class EventKind { way_free, left, first_byte, arrived };

/// `number` tells events of one time apart, by when they were thought of.
struct Event {
  double time = 0.0;
  std::uint64_t number = 0;
  EventKind kind = EventKind::left;
  Message message;

  friend bool operator>(const Event& a, const Event& b) {
    return std::tie(a.time, a.number) > std::tie(b.time, b.number);
  }
};

/// A way out: until when it is busy, and what may go next, by when it was sent. `is_called`: an event will look for it.
struct WayOut {
  double free_from = 0.0;
  bool is_called = false;
  std::map<std::uint64_t, Message> ready = {};
};

/// Ends that have not met, in their order, by sender, receiver and tag.
class WaitingEnds {
 public:
  void add(const std::shared_ptr<End>& end) { ends_[end->address()].push_back(end); }
  void drop(const std::shared_ptr<End>& end) {
    const auto found = ends_.find(end->address());
    if (found == ends_.end()) return;
    std::erase(found->second, end);
    if (found->second.empty()) ends_.erase(found);
  }
  /// The first that is opposite to this one; null if there is none.
  std::shared_ptr<End> take(const std::tuple<int, int, int>& address) {
    const auto found = ends_.find(address);
    if (found == ends_.end()) return nullptr;
    std::shared_ptr<End> end = found->second.front();
    drop(end);
    return end;
  }
  template <typename Function>
  void for_each(const Function& function) const {
    for (const auto& [address, ends] : ends_) std::ranges::for_each(ends, [&](const auto& end) { function(*end); });
  }

 private:
  std::map<std::tuple<int, int, int>, std::deque<std::shared_ptr<End>>> ends_;
};

/// Messages of each pair of ranks, counted.
class Messages {
 public:
  void add(const End& end) {
    auto& [count, bytes] = of_pair_[{end.from, end.to}];
    ++count;
    bytes += end.bytes;
  }
  /// Calls function(from, to, "4 messages of 2048 bytes in all") for each pair.
  template <typename Function>
  void for_each(const Function& function) const {
    for (const auto& [pair, messages] : of_pair_) {
      const auto& [count, bytes] = messages;
      function(
          pair.first, pair.second,
          count == 1 ? fmt::format("{} bytes", bytes) : fmt::format("{} messages of {} bytes in all", count, bytes));
    }
  }

 private:
  std::map<std::pair<int, int>, std::pair<int, std::int64_t>> of_pair_;
};

}  // namespace

class VirtualNetwork::State {
 public:
  explicit State(const NetworkModel& model) : model_(model) {}

  std::shared_ptr<End> send(int from, int to, int tag, const void* data, std::int64_t bytes) {
    check_rank(to);
    auto send = std::make_shared<End>(
        End{.number = next_number_++, .from = from, .to = to, .tag = tag, .source = data, .bytes = bytes});
    const auto receive = receives_.take(send->address());
    receive ? meet({send, receive}) : sends_.add(send);
    return send;
  }

  std::shared_ptr<End> receive(int from, int to, int tag, void* data, std::int64_t bytes) {
    check_rank(from);
    auto receive = std::make_shared<End>(
        End{.number = next_number_++, .from = from, .to = to, .tag = tag, .target = data, .bytes = bytes});
    const auto send = sends_.take(receive->address());
    send ? meet({send, receive}) : receives_.add(receive);
    return receive;
  }

  void cancel(const std::shared_ptr<End>& end) {
    end->is_given_up = true;
    sends_.drop(end);
    receives_.drop(end);
    std::erase(lost_, end);
  }

  std::vector<int> advance() {
    std::set<int> ranks;
    while (!events_.empty() && (ranks.empty() || events_.top().time <= now_)) {
      const Event event = events_.top();
      events_.pop();
      now_ = event.time;
      take(event, ranks);
    }
    return {ranks.begin(), ranks.end()};
  }

  double now() const { return now_; }
  const NetworkModel& model() const { return model_; }

  std::string waiting() const {
    constexpr std::size_t kMost = 10;
    Messages lost, missing, unwanted;
    for (const auto& end : lost_) lost.add(*end);
    receives_.for_each([&](const End& end) { missing.add(end); });
    sends_.for_each([&](const End& end) { unwanted.add(end); });
    std::vector<std::string> texts;
    lost.for_each([&](int from, int to, const std::string& what) {
      texts.push_back(fmt::format("rank {} waits for {} from rank {}, which were lost", to, what, from));
    });
    missing.for_each([&](int from, int to, const std::string& what) {
      texts.push_back(fmt::format("rank {} waits for {} from rank {}", to, what, from));
    });
    unwanted.for_each([&](int from, int to, const std::string& what) {
      texts.push_back(fmt::format("rank {} has {} for rank {}, which does not ask for them", from, what, to));
    });
    if (texts.size() > kMost) {
      const std::string more = fmt::format("{} more", texts.size() - kMost);
      texts.resize(kMost);
      texts.push_back(more);
    }
    return fmt::format("{}", fmt::join(texts, "; "));
  }

  void check_rank(int rank) const {
    require(rank >= 0 && rank < model_.ranks(), "a simulated network of {} ranks has no rank {}", model_.ranks(), rank);
  }

 private:
  /// What messages of these ranks use in common: negative numbers are of hosts.
  int way(int rank, int peer) const {
    if (model_.is_within_host(rank, peer)) return rank;
    return model_.is_link_shared ? -1 - model_.host_of(rank) : model_.ranks() + rank;
  }

  void add(double time, EventKind kind, const Message& message) { events_.push({time, next_number_++, kind, message}); }

  void meet(const Message& message) {
    const End &send = *message.send, &receive = *message.receive;
    require(send.bytes == receive.bytes, "a message of {} bytes from rank {}, and rank {} expects {}", send.bytes,
            send.from, send.to, receive.bytes);
    WayOut& way_out = ways_out_[way(send.from, send.to)];
    way_out.ready[send.number] = message;
    call(way_out);
  }

  /// Has begin_next() called as soon as the way is free, behind all that ranks do at this time: what one of them sent
  /// first goes first, whoever asks first. One call is under way at a time, however many messages there are.
  void call(WayOut& way_out) {
    if (way_out.ready.empty() || way_out.is_called) return;
    way_out.is_called = true;
    add(std::max(now_, way_out.free_from), EventKind::way_free, way_out.ready.begin()->second);
  }

  /// The next of those that may go the way of this message, which is free.
  void begin_next(const Message& any) {
    WayOut& way_out = ways_out_[way(any.send->from, any.send->to)];
    const Message message = way_out.ready.begin()->second;
    way_out.ready.erase(way_out.ready.begin());
    begin(message, way_out);
    way_out.is_called = false;
    call(way_out);
  }

  /// Both ends have given their memory, so that the data may move at once; the ends are told later.
  void begin(const Message& message, WayOut& way_out) {
    const End &send = *message.send, &receive = *message.receive;
    const int from = send.from, to = send.to;
    const LinkModel& link = model_.link(from, to);
    way_out.free_from = now_ + link.transfer_time(send.bytes);
    add(way_out.free_from, EventKind::left, message);
    if (send.is_given_up || model_.is_lost(from, to, now_)) {
      if (!receive.is_given_up) lost_.push_back(message.receive);
      return;
    }
    if (!receive.is_given_up) std::memcpy(receive.target, send.source, static_cast<std::size_t>(send.bytes));
    // Messages of a pair keep their order, whatever the jitter.
    auto& [count, last] = pairs_[{from, to}];
    last = std::max(last, now_ + link.latency + model_.jitter_of(from, to, count++));
    add(last, EventKind::first_byte, message);
  }

  void take(const Event& event, std::set<int>& ranks) {
    End &send = *event.message.send, &receive = *event.message.receive;
    switch (event.kind) {
      case EventKind::way_free:
        return begin_next(event.message);
      case EventKind::left:
        send.done = true;
        ranks.insert(send.from);
        return;
      case EventKind::first_byte: {
        double& free_from = ways_in_[way(send.to, send.from)];
        free_from = std::max(now_, free_from) + model_.link(send.from, send.to).transfer_time(send.bytes);
        return add(free_from, EventKind::arrived, event.message);
      }
      case EventKind::arrived:
        receive.done = true;
        ranks.insert(receive.to);
    }
  }

  NetworkModel model_;
  double now_ = 0.0;
  std::uint64_t next_number_ = 0;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::map<int, WayOut> ways_out_;
  std::map<int, double> ways_in_;                                          // until when each is busy
  std::map<std::pair<int, int>, std::pair<std::uint64_t, double>> pairs_;  // messages, and the last one's first byte
  WaitingEnds sends_, receives_;
  std::vector<std::shared_ptr<End>> lost_;  // receives whose message was lost
};

namespace {

using State = VirtualNetwork::State;

class VirtualTransfer final : public Transfer {
 public:
  VirtualTransfer(std::shared_ptr<State> state, std::shared_ptr<End> end)
      : state_(std::move(state)), end_(std::move(end)) {}
  VirtualTransfer(const VirtualTransfer&) = delete;
  VirtualTransfer& operator=(const VirtualTransfer&) = delete;
  ~VirtualTransfer() override {
    if (!end_->done) state_->cancel(end_);
  }
  bool done() override { return end_->done; }

 private:
  std::shared_ptr<State> state_;
  std::shared_ptr<End> end_;
};

class VirtualTransport final : public Transport {
 public:
  VirtualTransport(std::shared_ptr<State> state, int rank) : state_(std::move(state)), rank_(rank) {}

  std::unique_ptr<Transfer> send(int to, int tag, const void* data, std::int64_t bytes) override {
    return std::make_unique<VirtualTransfer>(state_, state_->send(rank_, to, tag, data, bytes));
  }
  std::unique_ptr<Transfer> receive(int from, int tag, void* data, std::int64_t bytes) override {
    return std::make_unique<VirtualTransfer>(state_, state_->receive(from, rank_, tag, data, bytes));
  }
  std::unique_ptr<Transport> subgroup(std::span<const int> /*members*/) override {
    fail("a simulated network on a virtual clock has one group");
  }

 private:
  std::shared_ptr<State> state_;
  int rank_;
};

}  // namespace

VirtualNetwork::VirtualNetwork(const NetworkModel& model) : state_(std::make_shared<State>(model)) {
  require(model.ranks() > 0, "a network on a virtual clock needs its ranks: hosts=8x8, or hosts=16");
}

std::unique_ptr<Transport> VirtualNetwork::transport(int rank) const {
  state_->check_rank(rank);
  return std::make_unique<VirtualTransport>(state_, rank);
}

double VirtualNetwork::now() const { return state_->now(); }
std::vector<int> VirtualNetwork::advance() { return state_->advance(); }
std::string VirtualNetwork::waiting() const { return state_->waiting(); }

double run_ranks(VirtualNetwork& network, int ranks, const std::function<bool(int)>& poll_rank) {
  const double begin = network.now();
  std::vector<bool> is_complete(static_cast<std::size_t>(ranks));
  int complete = 0;
  const auto poll = [&](int rank) {
    if (is_complete[static_cast<std::size_t>(rank)] || !poll_rank(rank)) return;
    is_complete[static_cast<std::size_t>(rank)] = true;
    ++complete;
  };
  for (int rank = 0; rank < ranks; ++rank) poll(rank);
  while (complete < ranks) {
    const std::vector<int> changed = network.advance();
    if (changed.empty())
      fail("simulated network: after {:.6g} s nothing is on its way any more: {}", network.now(), network.waiting());
    for (const int rank : changed) poll(rank);
  }
  return network.now() - begin;
}

}  // namespace tandem::comm

// Each message is told when its first byte would come.
#include "tandem/comm/transports/simulated/delayed_transport.h"

#include "tandem/core/error.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tandem::comm {

namespace {

/// Seconds by the machine's clock, which its processes share.
double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// What the transports of a rank, also those of its subgroups, have in common. Groups may be used by a thread each.
struct Ways {
  std::mutex mutex = {};
  NetworkModel model;
  std::optional<double> watched_from = {};
  /// Until when each is busy: within the host, and to other hosts.
  std::array<double, 2> out_free_from = {}, in_free_from = {};
  std::map<std::pair<int, int>, std::uint64_t> messages = {};  // sent, by sender and receiver
};

class DelayedSend final : public Transfer {
 public:
  DelayedSend(Ways& ways, int from, int to, std::int64_t bytes) {
    const std::scoped_lock lock(ways.mutex);
    double& free_from = ways.out_free_from[ways.model.is_within_host(from, to) ? 0 : 1];
    const LinkModel& link = ways.model.link(from, to);
    const double now = seconds_now(), begins = std::max(now, free_from);
    leaves_ = free_from = begins + link.transfer_time(bytes);
    first_byte_ = begins + link.latency + ways.model.jitter_of(from, to, ways.messages[{from, to}]++);
    is_lost_ = ways.watched_from && ways.model.is_lost(from, to, now - *ways.watched_from);
  }

  void start(Transport& inner, int to, int tag, const void* data, std::int64_t bytes) {
    if (is_lost_) return;
    time_ = inner.send(to, tag, &first_byte_, sizeof first_byte_);
    data_ = inner.send(to, tag, data, bytes);
  }

  bool done() override {
    if (time_ && !time_->done()) return false;
    if (data_ && !data_->done()) return false;
    return seconds_now() >= leaves_;
  }

 private:
  double first_byte_ = 0.0, leaves_ = 0.0;
  bool is_lost_ = false;
  std::unique_ptr<Transfer> time_, data_;
};

class DelayedReceive final : public Transfer {
 public:
  DelayedReceive(std::shared_ptr<Ways> ways, bool is_within_host, double transfer_time)
      : ways_(std::move(ways)), is_within_host_(is_within_host), transfer_time_(transfer_time) {}

  void start(Transport& inner, int from, int tag, void* data, std::int64_t bytes) {
    time_ = inner.receive(from, tag, &first_byte_, sizeof first_byte_);
    data_ = inner.receive(from, tag, data, bytes);
  }

  bool done() override {
    if (!has_time_ && !time_->done()) return false;
    has_time_ = true;
    if (!takes_way_) {
      // Not before its first byte comes: another message may come first.
      if (seconds_now() < first_byte_) return false;
      const std::scoped_lock lock(ways_->mutex);
      double& free_from = ways_->in_free_from[is_within_host_ ? 0 : 1];
      arrives_ = free_from = std::max(first_byte_, free_from) + transfer_time_;
      takes_way_ = true;
    }
    return data_->done() && seconds_now() >= arrives_;
  }

 private:
  std::shared_ptr<Ways> ways_;
  bool is_within_host_;
  double transfer_time_;
  double first_byte_ = 0.0, arrives_ = 0.0;
  bool has_time_ = false, takes_way_ = false;
  std::unique_ptr<Transfer> time_, data_;
};

class DelayedTransport final : public Transport {
 public:
  /// `ranks`: of the whole network, by this group's.
  DelayedTransport(std::unique_ptr<Transport> inner, std::shared_ptr<Ways> ways, int rank, std::vector<int> ranks)
      : inner_(std::move(inner)), ways_(std::move(ways)), rank_(rank), ranks_(std::move(ranks)) {}

  std::unique_ptr<Transfer> send(int to, int tag, const void* data, std::int64_t bytes) override {
    auto send = std::make_unique<DelayedSend>(*ways_, rank_, of_network(to), bytes);
    send->start(*inner_, to, tag, data, bytes);
    return send;
  }

  std::unique_ptr<Transfer> receive(int from, int tag, void* data, std::int64_t bytes) override {
    const NetworkModel& model = ways_->model;
    const int sender = of_network(from);
    auto receive = std::make_unique<DelayedReceive>(ways_, model.is_within_host(sender, rank_),
                                                    model.link(sender, rank_).transfer_time(bytes));
    receive->start(*inner_, from, tag, data, bytes);
    return receive;
  }

  void check() override { inner_->check(); }
  void begin_watched() override {
    const std::scoped_lock lock(ways_->mutex);
    if (!ways_->watched_from) ways_->watched_from = seconds_now();  // subgroups begin later
  }
  std::string thread_obstacle() const override { return inner_->thread_obstacle(); }

  std::unique_ptr<Transport> subgroup(std::span<const int> members) override {
    std::vector<int> ranks;
    for (const int member : members) ranks.push_back(of_network(member));
    return std::make_unique<DelayedTransport>(inner_->subgroup(members), ways_, rank_, std::move(ranks));
  }

 private:
  int of_network(int rank) const { return ranks_.empty() ? rank : ranks_.at(static_cast<std::size_t>(rank)); }

  std::unique_ptr<Transport> inner_;
  std::shared_ptr<Ways> ways_;
  int rank_;
  std::vector<int> ranks_;  // empty: as they are
};

}  // namespace

std::unique_ptr<Transport> delay_messages(std::unique_ptr<Transport> inner, int rank, const NetworkModel& model) {
  require(!model.is_link_shared, "network: link=shared is for a virtual clock; leave it out in real time");
  require(model.hosts == 0 || rank < model.ranks(), "network: hosts={}x{} have no rank {}", model.hosts,
          model.ranks_per_host, rank);
  auto ways = std::make_shared<Ways>();
  ways->model = model;
  return std::make_unique<DelayedTransport>(std::move(inner), std::move(ways), rank, std::vector<int>{});
}

}  // namespace tandem::comm

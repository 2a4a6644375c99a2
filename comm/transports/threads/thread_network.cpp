// Mailboxes of messages that wait in their senders' memory.
#include "tandem/comm/transports/threads/thread_network.h"

#include "tandem/core/error.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

namespace tandem::comm {

namespace {

struct Message {
  const void* data = nullptr;
  std::int64_t bytes = 0;
  std::atomic<bool> taken = false;  // and copied: nobody reads `data` any more
};

using Address = std::tuple<int, int, int, int>;  // group, sender, receiver, tag

}  // namespace

class ThreadNetwork::Mailboxes {
 public:
  std::shared_ptr<Message> post(const Address& address, const void* data, std::int64_t bytes) {
    auto message = std::make_shared<Message>();
    message->data = data;
    message->bytes = bytes;
    const std::lock_guard lock(mutex_);
    boxes_[address].push_back(message);
    return message;
  }

  /// Null if none is there.
  std::shared_ptr<Message> take(const Address& address) {
    const std::lock_guard lock(mutex_);
    const auto box = boxes_.find(address);
    if (box == boxes_.end()) return nullptr;
    std::shared_ptr<Message> message = box->second.front();
    box->second.pop_front();
    if (box->second.empty()) boxes_.erase(box);
    return message;
  }

  /// Gives a message up. False where somebody has taken it already, and may be copying it.
  bool withdraw(const Address& address, const std::shared_ptr<Message>& message) {
    const std::lock_guard lock(mutex_);
    const auto box = boxes_.find(address);
    if (box == boxes_.end()) return false;
    const bool was_there = std::erase(box->second, message) > 0;
    if (box->second.empty()) boxes_.erase(box);
    return was_there;
  }

  void stop(const std::string& reason) {
    const std::lock_guard lock(mutex_);
    if (!stopped_) reason_ = reason;
    stopped_ = true;
  }

  /// Throws Error after stop().
  void check() {
    if (!stopped_) return;
    const std::lock_guard lock(mutex_);
    fail("{}", reason_);
  }

  /// The same for all that name it alike.
  int group_number(const std::string& name) {
    const std::lock_guard lock(mutex_);
    return groups_.try_emplace(name, static_cast<int>(groups_.size()) + 1).first->second;
  }

 private:
  std::mutex mutex_;
  std::map<Address, std::deque<std::shared_ptr<Message>>> boxes_;
  std::map<std::string, int> groups_;
  std::string reason_;
  std::atomic<bool> stopped_ = false;
};

namespace {

using Mailboxes = ThreadNetwork::Mailboxes;

class Sending final : public Transfer {
 public:
  Sending(std::shared_ptr<Mailboxes> mailboxes, const Address& address, const void* data, std::int64_t bytes)
      : mailboxes_(std::move(mailboxes)), address_(address), message_(mailboxes_->post(address, data, bytes)) {}
  ~Sending() override {
    if (message_->taken || mailboxes_->withdraw(address_, message_)) return;
    while (!message_->taken) std::this_thread::yield();  // who gave the memory may take it back then
  }
  Sending(const Sending&) = delete;
  Sending& operator=(const Sending&) = delete;

  bool done() override {
    if (message_->taken) return true;
    mailboxes_->check();
    return false;
  }

 private:
  std::shared_ptr<Mailboxes> mailboxes_;
  Address address_;
  std::shared_ptr<Message> message_;
};

class Receiving final : public Transfer {
 public:
  Receiving(std::shared_ptr<Mailboxes> mailboxes, const Address& address, void* data, std::int64_t bytes)
      : mailboxes_(std::move(mailboxes)), address_(address), data_(data), bytes_(bytes) {}

  bool done() override {
    if (done_) return true;
    const auto message = mailboxes_->take(address_);
    if (!message) {
      mailboxes_->check();
      return false;
    }
    if (message->bytes != bytes_) message->taken = true;
    require(message->bytes == bytes_, "a message of {} bytes from rank {}, and rank {} expects {}", message->bytes,
            std::get<1>(address_), std::get<2>(address_), bytes_);
    std::memcpy(data_, message->data, static_cast<std::size_t>(bytes_));
    message->taken = true;
    return done_ = true;
  }

 private:
  std::shared_ptr<Mailboxes> mailboxes_;
  Address address_;
  void* data_;
  std::int64_t bytes_;
  bool done_ = false;
};

class ThreadTransport final : public Transport {
 public:
  ThreadTransport(std::shared_ptr<Mailboxes> mailboxes, int group, int rank)
      : mailboxes_(std::move(mailboxes)), group_(group), rank_(rank) {}

  std::unique_ptr<Transfer> send(int to, int tag, const void* data, std::int64_t bytes) override {
    return std::make_unique<Sending>(mailboxes_, Address{group_, rank_, to, tag}, data, bytes);
  }
  std::unique_ptr<Transfer> receive(int from, int tag, void* data, std::int64_t bytes) override {
    return std::make_unique<Receiving>(mailboxes_, Address{group_, from, rank_, tag}, data, bytes);
  }

  void check() override { mailboxes_->check(); }

  std::unique_ptr<Transport> subgroup(std::span<const int> members) override {
    const auto mine = std::ranges::find(members, rank_);
    require(mine != members.end(), "rank {} is no member of the group {{{}}}", rank_, fmt::join(members, ", "));
    const std::string ranks = fmt::format("{}: {}", group_, fmt::join(members, " "));
    const std::string name = fmt::format("{} #{}", ranks, made_[ranks]++);
    return std::make_unique<ThreadTransport>(mailboxes_, mailboxes_->group_number(name),
                                             static_cast<int>(mine - members.begin()));
  }

 private:
  std::shared_ptr<Mailboxes> mailboxes_;
  int group_;
  int rank_;
  std::map<std::string, int> made_;  // how many groups of the same ranks
};

}  // namespace

ThreadNetwork::ThreadNetwork() : mailboxes_(std::make_shared<Mailboxes>()) {}

void ThreadNetwork::stop(const std::string& reason) const { mailboxes_->stop(reason); }

std::unique_ptr<Transport> ThreadNetwork::transport(int rank) const {
  return std::make_unique<ThreadTransport>(mailboxes_, 0, rank);
}

}  // namespace tandem::comm

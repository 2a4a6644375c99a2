// Two rows of numbers, then the message.
#include "tandem/comm/doctor/checked_messages.h"

#include "tandem/core/out.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <span>
#include <string>
#include <utility>

namespace tandem::comm {

namespace {

/// What one end of a message is.
struct End {
  DType dtype;
  std::int64_t count;
  bool is_on_gpu;       // and goes another way than what is in host memory
  std::int64_t number;  // of messages of this pair and tag, from 1

  bool fits(const End& other) const {
    return dtype == other.dtype && count == other.count && is_on_gpu == other.is_on_gpu;
  }
};

constexpr std::int64_t kRow = 4;

Tensor row_of(const End& end) {
  return Tensor::from(
      std::vector<std::int64_t>{static_cast<std::int64_t>(end.dtype), end.count, end.is_on_gpu ? 1 : 0, end.number},
      {kRow});
}

End end_of(const Tensor& row) {
  const auto numbers = row.to_vector<std::int64_t>();
  return {static_cast<DType>(numbers[0]), numbers[1], numbers[2] != 0, numbers[3]};
}

std::string text_of(const End& end, bool tells_place) {
  std::string text = fmt::format("{}[{}]", name_of(end.dtype), end.count);
  if (tells_place) text += end.is_on_gpu ? " of a GPU" : " of host memory";
  return text;
}

/// The tags of what the sender and the receiver of a message tell, behind those of programs.
int row_tag(bool of_sender, int tag) { return (of_sender ? 1 : 2) * (kMaxMessageTag + 1) + tag; }

}  // namespace

class CheckedMessages::Message final : public Work {
 public:
  Message(CheckedMessages& all, Backend& backend, const Collective& message, std::int64_t number)
      : all_(all),
        backend_(backend),
        message_(message),
        mine_{message.dtype, message.count(), &backend != &backend.on(Device{}), number} {
    Backend& host = backend.on(Device{});
    const Tensor own_row = row_of(mine_);
    hearing_ = host.start({.kind = CollectiveKind::receive,
                           .dtype = DType::i64,
                           .peer = message.peer,
                           .tag = row_tag(!sends(), message.tag),
                           .counts = {kRow},
                           .output = Out(their_row_).raw_data(),
                           .output_owner = their_row_});
    telling_ = host.start({.kind = CollectiveKind::send,
                           .dtype = DType::i64,
                           .peer = message.peer,
                           .tag = row_tag(sends(), message.tag),
                           .counts = {kRow},
                           .input = own_row.raw_data(),
                           .input_owner = own_row});
    all_.open_.push_back(this);
  }
  ~Message() override { std::erase(all_.open_, this); }
  Message(const Message&) = delete;
  Message& operator=(const Message&) = delete;

  bool poll() override {
    all_.move();
    return has_begun() && work_->poll();
  }
  void wait() override {
    Patience patience;
    while (!has_begun()) patience.pause(all_.move());
    all_.wait_for(*work_);
  }
  std::int64_t moves() const override { return all_.moves_ + (work_ ? work_ : hearing_)->moves(); }

  bool is_on_gpu() const { return mine_.is_on_gpu; }

  /// Whether the message itself must begin before that of `later`.
  bool is_ahead_of(const Message& later) const {
    return mine_.is_on_gpu == later.mine_.is_on_gpu &&
           (mine_.is_on_gpu || (message_.kind == later.message_.kind && message_.peer == later.message_.peer &&
                                message_.tag == later.message_.tag));
  }

  /// Whether it has begun now, or failed. `has_turn`: none that is ahead of it waits.
  bool move_on(bool has_turn) noexcept {
    try {
      is_told_ = is_told_ || telling_->poll();
      is_heard_ = is_heard_ || hearing_->poll();
      if (!is_told_ || !is_heard_ || !has_turn) return false;
      check();
      work_ = backend_.start(message_);
    } catch (...) {
      fault_ = std::current_exception();
    }
    return true;
  }

 private:
  bool sends() const { return message_.kind == CollectiveKind::send; }

  /// Throws what it failed by.
  bool has_begun() const {
    if (fault_) std::rethrow_exception(fault_);
    return work_ != nullptr;
  }

  void check() const {
    const End theirs = end_of(their_row_);
    if (mine_.fits(theirs)) return;
    const int here = backend_.place().rank, there = message_.peer;
    const End &sent = sends() ? mine_ : theirs, &received = sends() ? theirs : mine_;
    const int from = sends() ? here : there, to = sends() ? there : here;
    const bool tells_place = sent.is_on_gpu != received.is_on_gpu;
    throw MessageMismatch(
        fmt::format("message #{} from rank {} to rank {} (tag {}) does not fit: rank {} sends {}, and rank {} "
                    "receives {}; a send() and its receive() need the same dtype and number of elements{}, and meet in "
                    "the order in which each rank calls them",
                    sent.number, from, to, message_.tag, from, text_of(sent, tells_place), to,
                    text_of(received, tells_place), tells_place ? ", both of a GPU or both of host memory" : ""));
  }

  CheckedMessages& all_;
  Backend& backend_;
  Collective message_;
  End mine_;
  Tensor their_row_ = Tensor::zeros({kRow}, {.dtype = DType::i64});
  std::unique_ptr<Work> hearing_, telling_, work_;
  bool is_heard_ = false, is_told_ = false;
  std::exception_ptr fault_;
};

std::unique_ptr<Work> CheckedMessages::start(Backend& backend, const Collective& message) {
  std::int64_t& number = numbers_[{message.kind, message.peer, message.tag}];
  return std::make_unique<Message>(*this, backend, message, ++number);
}

bool CheckedMessages::move() {
  if (open_.empty()) return false;
  std::vector<Message*> still_open;
  for (Message* const message : open_) {
    const bool has_turn =
        std::ranges::none_of(still_open, [&](const Message* earlier) { return earlier->is_ahead_of(*message); });
    if (!message->move_on(has_turn)) still_open.push_back(message);
  }
  const bool moved = still_open.size() < open_.size();
  if (moved) ++moves_;
  open_ = std::move(still_open);
  return moved;
}

void CheckedMessages::wait_for(Work& work) {
  Patience patience;
  while (!open_.empty()) {
    if (work.poll()) return;
    patience.pause(move());
  }
  work.wait();
}

void CheckedMessages::wait_for_order(Backend& backend) {
  if (&backend == &backend.on(Device{})) return;
  Patience patience;
  while (std::ranges::any_of(open_, &Message::is_on_gpu)) patience.pause(move());
}

}  // namespace tandem::comm

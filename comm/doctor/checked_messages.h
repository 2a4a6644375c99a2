// Messages whose two ranks tell each other what they are about to send and to receive, before anything is sent.
#pragma once

#include "tandem/comm/backends/backend.h"
#include "tandem/core/error.h"

#include <cstdint>
#include <map>
#include <memory>
#include <tuple>
#include <vector>

namespace tandem::comm {

/// What both ranks of a message throw whose send() and receive() do not fit: nothing of it was sent.
class MessageMismatch : public Error {
 public:
  using Error::Error;
};

/// The messages of one rank of a group whose ranks all check theirs. For each message both ranks send each other dtype
/// and number of elements, as messages of tags that no program uses. Where these are the same, the message itself
/// follows. A send therefore waits for its receive, however small it is. For one thread at a time.
class CheckedMessages {
 public:
  CheckedMessages() = default;
  CheckedMessages(const CheckedMessages&) = delete;
  CheckedMessages& operator=(const CheckedMessages&) = delete;

  /// Begins a message, a send or a receive, that `backend` carries. Its poll() and waits throw MessageMismatch where
  /// the two ends do not fit. The work must not outlive this, nor the backend.
  std::unique_ptr<Work> start(Backend& backend, const Collective& message);

  /// Moves on all messages that are not under way yet, as far as possible without waiting; true where one moved.
  bool move();

  /// Waits for a work of this group, while messages move on: another rank may need them before it does its part.
  void wait_for(Work& work);

  /// Returns once no message waits to be begun that must be ahead of what `backend` begins next: on a GPU, where
  /// operations are done in the order in which they begin.
  void wait_for_order(Backend& backend);

 private:
  class Message;
  using Meeting = std::tuple<CollectiveKind, int, int>;  // kind, other rank, tag

  std::vector<Message*> open_;               // that are not under way yet, as they were started
  std::map<Meeting, std::int64_t> numbers_;  // of the last message
  std::int64_t moves_ = 0;
};

}  // namespace tandem::comm

// Point-to-point messages: all that our own collectives need from a network.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace tandem::comm {

/// A message on its way. Dropping it before it is done gives it up: for errors only.
class Transfer {
 public:
  virtual ~Transfer() = default;

  /// True once the memory may be used again (sent) or holds the message (received). Never waits.
  virtual bool done() = 0;
};

/// Messages between ranks. Those of one sender, receiver and tag arrive in the order in which they were sent. The
/// memory belongs to the transfer until it is done; a message must be as long as the receiver expects, and not empty.
class Transport {
 public:
  virtual ~Transport() = default;
  virtual std::unique_ptr<Transfer> send(int to, int tag, const void* data, std::int64_t bytes) = 0;
  virtual std::unique_ptr<Transfer> receive(int from, int tag, void* data, std::int64_t bytes) = 0;

  /// For a rank that waits for others, by whatever way: throws Error where they are known to have ended.
  virtual void check() {}

  /// The group that it is for is set up, and its ranks watch each other: a simulated network loses no messages before.
  virtual void begin_watched() {}

  /// Why messages of several threads, each of which uses a transport of its own, are not for this transport's library;
  /// empty where they are.
  virtual std::string thread_obstacle() const { return ""; }

  /// Messages of their own between some of the ranks, which get the numbers of their places in `members`. All members,
  /// and no others, call it with the same ranks, in the same order as other calls that have one of them in common.
  virtual std::unique_ptr<Transport> subgroup(std::span<const int> members) = 0;
};

}  // namespace tandem::comm

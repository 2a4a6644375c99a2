// Connections between hosts by which their ranks tell each other what they do: TCP, one for each pair of hosts.
#pragma once

#include "tandem/comm/launch/network_interface.h"

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace tandem::comm {

/// One end of a connection. Nothing waits.
class HostLink {
 public:
  /// `open`; `ended`: the other process has closed it, or its host says that it is gone; `lost`: the network says so.
  enum class State : std::uint8_t { open, ended, lost };

  /// Takes over an open socket.
  explicit HostLink(int socket);
  ~HostLink();
  HostLink(HostLink&& other) noexcept;
  HostLink& operator=(HostLink&&) = delete;

  State state() const { return state_; }
  /// Appends what has come.
  void receive(std::string& into);
  /// Sends what goes at once, and takes it away from `bytes`.
  void send(std::string& bytes);
  /// Whether the connection ended by a reset, which whatever is between hosts can send as well as a process that was
  /// killed.
  bool was_reset() const { return was_reset_; }
  /// Nothing more is sent. What has come is read first: a connection that is closed before is reset, and what was sent
  /// may be lost.
  void finish();
  /// Connections of this process that are open.
  static std::size_t open_links();
  /// Whether the other host has confirmed all that was sent, the last of it within a second: it is there, whatever the
  /// process does.
  bool is_confirmed() const;

 private:
  void fail(int error);
  void close_socket();

  int socket_;
  State state_ = State::open;
  bool was_reset_ = false;
};

/// What both ends of a connection must know of each other.
struct LinkKey {
  std::uint64_t token = 0;  ///< of the group
  std::int32_t from = 0;    ///< number of the host that connects
};

/// Where hosts that connect arrive.
class LinkListener {
 public:
  /// Listens at any free port of `address`, 0 for all addresses of this host. Throws Error where there is no socket.
  explicit LinkListener(std::uint32_t address);
  ~LinkListener();
  LinkListener(const LinkListener&) = delete;
  LinkListener& operator=(const LinkListener&) = delete;

  int port() const { return port_; }
  /// Of those that come in time, the hosts in `expected` with this token, by number. Others are sent away.
  std::map<int, HostLink> accept(std::uint64_t token, std::vector<int> expected, std::chrono::milliseconds limit) const;

 private:
  int socket_ = -1;
  int port_ = 0;
};

/// Connects to a listener, from `own` where that is not 0, and shows the key. Throws Error where that takes longer than
/// `limit`, or cannot be.
HostLink connect_link(std::uint32_t address, int port, std::uint32_t own, const LinkKey& key,
                      std::chrono::milliseconds limit);

/// Those of another host's addresses that may lead there, the most promising first: in a network of this host's, and
/// not its own (as that of a bridge for containers, which all hosts may have alike).
std::vector<std::uint32_t> addresses_to_try(std::span<const std::uint32_t> theirs,
                                            std::span<const NetworkInterface> ours);

}  // namespace tandem::comm

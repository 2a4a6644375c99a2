// Sockets.
#include "tandem/comm/doctor/host_links.h"

#include "tandem/core/error.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

namespace tandem::comm {

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

/// What whoever connects says first, in the host's byte order: hosts of one run are alike.
struct Greeting {
  std::uint64_t magic = kMagic;
  LinkKey key;
  static constexpr std::uint64_t kMagic = 0x316b'6e69'6c74'6474;
};

sockaddr_in socket_address(std::uint32_t address, int port) {
  sockaddr_in result{};
  result.sin_family = AF_INET;
  result.sin_addr.s_addr = htonl(address);
  result.sin_port = htons(static_cast<std::uint16_t>(port));
  return result;
}

int make_socket() {
  const int made = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  require(made >= 0, "the system gives no socket: {}", std::strerror(errno));
  return made;
}

void bind_to(int socket, std::uint32_t address) {
  const sockaddr_in where = socket_address(address, 0);
  require(::bind(socket, reinterpret_cast<const sockaddr*>(&where), sizeof where) == 0, "{} cannot be used: {}",
          address_text(address), std::strerror(errno));
}

std::atomic<std::size_t> links_of_process{0};

/// Whether the socket is ready for these events in time.
bool is_ready(int socket, short events, Clock::time_point end) {
  pollfd asked{socket, events, 0};
  int ready = 0;
  do {  // again where a signal came between
    const auto left = std::chrono::duration_cast<milliseconds>(end - Clock::now());
    ready = ::poll(&asked, 1, static_cast<int>(std::max<std::int64_t>(left.count(), 0)));
  } while (ready < 0 && errno == EINTR);
  return ready == 1;
}

void send_at_once(int socket) {
  const int on = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

/// What a new connection says, in time and to the point; else from -1.
LinkKey read_key(int socket, Clock::time_point end) {
  Greeting greeting;
  std::array<char, sizeof greeting> bytes{};
  for (std::size_t have = 0; have < bytes.size();) {
    if (!is_ready(socket, POLLIN, end)) return {0, -1};
    const ssize_t count = ::recv(socket, bytes.data() + have, bytes.size() - have, 0);
    if (count <= 0) return {0, -1};
    have += static_cast<std::size_t>(count);
  }
  std::memcpy(&greeting, bytes.data(), sizeof greeting);
  return greeting.magic == Greeting::kMagic ? greeting.key : LinkKey{0, -1};
}

}  // namespace

HostLink::HostLink(int socket) : socket_(socket) { ++links_of_process; }

HostLink::~HostLink() { close_socket(); }

HostLink::HostLink(HostLink&& other) noexcept
    : socket_(std::exchange(other.socket_, -1)), state_(other.state_), was_reset_(other.was_reset_) {}

std::size_t HostLink::open_links() { return links_of_process; }

void HostLink::close_socket() {
  if (socket_ < 0) return;
  ::close(std::exchange(socket_, -1));
  --links_of_process;
}

void HostLink::fail(int error) {
  if (error == EAGAIN || error == EWOULDBLOCK || error == EINTR) return;
  // A process that was killed while it had not read all is answered for by a reset.
  was_reset_ = was_reset_ || error == ECONNRESET || error == EPIPE;
  state_ = error == 0 || was_reset_ ? State::ended : State::lost;
  close_socket();
}

void HostLink::receive(std::string& into) {
  std::array<char, 1 << 14> bytes;
  constexpr int kMostReads = 16;  // whoever sends on and on gets no more of this thread at a time
  for (int i = 0; i < kMostReads && state_ == State::open; ++i) {
    const ssize_t count = ::recv(socket_, bytes.data(), bytes.size(), 0);
    if (count <= 0) return fail(count == 0 ? 0 : errno);
    into.append(bytes.data(), static_cast<std::size_t>(count));
    if (static_cast<std::size_t>(count) < bytes.size()) return;
  }
}

void HostLink::send(std::string& bytes) {
  if (state_ != State::open || bytes.empty()) return;
  const ssize_t count = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  if (count >= 0)
    bytes.erase(0, static_cast<std::size_t>(count));
  else if (errno == EPIPE || errno == ECONNRESET)
    was_reset_ = true;  // what has come is still to be read, and says so then
  else
    fail(errno);
}

void HostLink::finish() {
  if (state_ != State::open) return;
  std::string rest;
  receive(rest);
  if (state_ == State::open) ::shutdown(socket_, SHUT_WR);
}

bool HostLink::is_confirmed() const {
  constexpr std::uint32_t kRecent = 1000;  // milliseconds
  tcp_info info{};
  socklen_t size = sizeof info;
  return state_ == State::open && ::getsockopt(socket_, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 &&
         info.tcpi_unacked == 0 && info.tcpi_last_ack_recv < kRecent;
}

LinkListener::LinkListener(std::uint32_t address) : socket_(make_socket()) {
  try {
    bind_to(socket_, address);
    require(::listen(socket_, SOMAXCONN) == 0, "the system lets nobody connect: {}", std::strerror(errno));
    sockaddr_in own{};
    socklen_t size = sizeof own;
    require(::getsockname(socket_, reinterpret_cast<sockaddr*>(&own), &size) == 0, "a socket without a port: {}",
            std::strerror(errno));
    port_ = ntohs(own.sin_port);
  } catch (...) {
    ::close(socket_);
    throw;
  }
}

LinkListener::~LinkListener() { ::close(socket_); }

std::map<int, HostLink> LinkListener::accept(std::uint64_t token, std::vector<int> expected, milliseconds limit) const {
  constexpr milliseconds kForKey{200};
  const Clock::time_point end = Clock::now() + limit;
  std::map<int, HostLink> links;
  while (!expected.empty() && is_ready(socket_, POLLIN, end)) {
    const int accepted = ::accept4(socket_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (accepted < 0) continue;
    HostLink link(accepted);
    const LinkKey key = read_key(accepted, std::min(end, Clock::now() + kForKey));
    if (key.token != token || std::erase(expected, key.from) == 0) continue;
    send_at_once(accepted);
    links.emplace(key.from, std::move(link));
  }
  return links;
}

HostLink connect_link(std::uint32_t address, int port, std::uint32_t own, const LinkKey& key, milliseconds limit) {
  const Clock::time_point end = Clock::now() + limit;
  const int socket = make_socket();
  HostLink link(socket);
  if (own != 0) bind_to(socket, own);
  const sockaddr_in where = socket_address(address, port);
  const auto check = [&](bool is_good, const char* why) {
    require(is_good, "no connection to {}:{}: {}", address_text(address), port, why);
  };
  if (::connect(socket, reinterpret_cast<const sockaddr*>(&where), sizeof where) != 0) {
    check(errno == EINPROGRESS, std::strerror(errno));
    check(is_ready(socket, POLLOUT, end), "no answer");
    int error = 0;
    socklen_t size = sizeof error;
    ::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size);
    check(error == 0, std::strerror(error));
  }
  send_at_once(socket);
  Greeting greeting;
  greeting.key = key;
  std::string bytes(sizeof greeting, '\0');
  std::memcpy(bytes.data(), &greeting, sizeof greeting);
  link.send(bytes);
  check(bytes.empty(), "it takes nothing");
  return link;
}

}  // namespace tandem::comm

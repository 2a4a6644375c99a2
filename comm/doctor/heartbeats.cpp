// Sending and showing, and the connections for it.
#include "tandem/comm/doctor/heartbeats.h"

#include "tandem/core/error.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <random>
#include <sstream>
#include <utility>

namespace tandem::comm {

namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

constexpr milliseconds kInterval = 250ms, kPerHost = 10ms, kLongestInterval = 500ms;
static_assert(2 * kLongestInterval < StatusBoard::kSilence);

std::int64_t nanoseconds(milliseconds time) { return std::chrono::nanoseconds(time).count(); }

}  // namespace

Heartbeats::Heartbeats(std::shared_ptr<StatusBoard> board, std::vector<FarHost> hosts)
    : board_(std::move(board)),
      hosts_(std::move(hosts)),
      interval_(nanoseconds(std::clamp(static_cast<int>(hosts_.size()) * kPerHost, kInterval, kLongestInterval))) {
  for (FarHost& host : hosts_) host.heard_at = steady_nanoseconds();
  send();
}

void Heartbeats::read(FarHost& host, std::int64_t now) {
  if (host.link.state() != HostLink::State::open || host.reader.is_broken()) return;
  host.link.receive(host.reader.buffer());
  while (const std::optional<std::string> frame = host.reader.next()) {
    const auto ranks = decode_ranks(*frame);
    if (!ranks) continue;
    host.heard_at = now;
    for (const RankView& view : *ranks)
      if (std::ranges::find(host.ranks, view.rank) != host.ranks.end()) board_->show_far(view, now);
  }
  // A network that comes back resets connections that one end has given up, of processes that are well.
  const bool is_believed = !host.link.was_reset() || now - host.heard_at < nanoseconds(StatusBoard::kSilence);
  if (host.link.state() == HostLink::State::ended && is_believed)
    board_->show_far_state(host.ranks.front(), ProcessState::ended);
}

void Heartbeats::judge(const FarHost& host, std::int64_t now) {
  if (host.link.state() != HostLink::State::open || now - host.heard_at < nanoseconds(StatusBoard::kSilence)) return;
  board_->show_far_state(host.ranks.front(), host.link.is_confirmed() ? ProcessState::halted : ProcessState::unknown);
}

void Heartbeats::beat() {
  const std::int64_t now = steady_nanoseconds();
  for (FarHost& host : hosts_) {
    read(host, now);
    host.link.send(host.unsent);
  }
  if (now < next_) return;
  next_ = now + interval_;
  for (const FarHost& host : hosts_) judge(host, now);
  send();
}

void Heartbeats::tell() {
  const std::string all = frame_of(encode_ranks(board_->look_here()));
  for (FarHost& host : hosts_) {
    host.unsent += all;
    host.link.send(host.unsent);
  }
}

void Heartbeats::finish() {
  tell();
  for (FarHost& host : hosts_) host.link.finish();
}

void Heartbeats::send() {
  const std::string all = frame_of(encode_ranks(board_->look_here()));
  const std::string nothing = frame_of(encode_ranks({}));
  const std::int64_t now = steady_nanoseconds();
  for (FarHost& host : hosts_) {
    // Who does not read is asked in few bytes whether it is there.
    const bool reads = now - host.heard_at < nanoseconds(StatusBoard::kSilence);
    if (host.unsent.empty()) host.unsent = reads ? all : nothing;
    host.link.send(host.unsent);
  }
}

// Connecting ----------------------------------------------------------------------------------------------------------

namespace {

constexpr milliseconds kForOne = 1000ms, kForAll = 3000ms, kForGreeting = 1000ms;

/// Where a host can be reached: "token port address,address"; of the first rank of each.
struct Meeting {
  std::uint64_t token = 0;
  int port = 0;  // 0: nowhere
  std::vector<std::uint32_t> addresses;
};

std::string to_text(const Meeting& meeting) {
  return fmt::format("{} {} {}", meeting.token, meeting.port, fmt::join(meeting.addresses, " "));
}

/// Many groups of many hosts must leave a program the files that it opens itself. "" where there are enough.
std::string shortage_of_files(std::size_t wanted) {
  rlimit limit{};
  const bool is_known = getrlimit(RLIMIT_NOFILE, &limit) == 0;
  if (!is_known || HostLink::open_links() + wanted <= limit.rlim_cur / 2) return "";
  return fmt::format(
      "host {}: the connections of all groups would be more than half of the {} files that a process may open (ulimit "
      "-n)",
      host_name(), limit.rlim_cur);
}

Meeting read_meeting(const std::string& text) {
  Meeting meeting;
  std::istringstream stream(text);
  stream >> meeting.token >> meeting.port;
  for (std::uint32_t address = 0; stream >> address;) meeting.addresses.push_back(address);
  return meeting;
}

/// Of one group. Hosts are numbered by their first ranks.
class Connector {
 public:
  Connector(Backend& backend, const StatusBoard& board, const std::optional<NetworkInterface>& interface)
      : backend_(backend), interface_(interface), ours_(network_interfaces()) {
    const std::vector<int>& firsts = board.first_ranks();
    for (std::size_t rank = 0; rank < firsts.size(); ++rank) {
      const auto host = std::ranges::find(firsts_, firsts[rank]);
      const auto at = static_cast<std::size_t>(host - firsts_.begin());
      if (host == firsts_.end()) {
        firsts_.push_back(firsts[rank]);
        ranks_.emplace_back();
      }
      ranks_[at].push_back(static_cast<int>(rank));
    }
    const auto own = std::ranges::find(firsts_, board.place().rank);
    if (own != firsts_.end()) own_ = static_cast<int>(own - firsts_.begin());
  }

  /// Collective. By host; none for ranks that are not the first of their host.
  std::map<int, HostLink> connect(std::string& obstacle) {
    Meeting mine = open();
    const std::vector<std::string> texts = backend_.all_gather_bytes(to_text(mine));
    std::vector<Meeting> meetings;
    for (const int first : firsts_) meetings.push_back(read_meeting(texts[static_cast<std::size_t>(first)]));
    const std::uint64_t token = meetings.front().token;
    std::map<int, HostLink> links = call_lower(meetings, token);
    // So each host knows whom to expect.
    std::vector<int> reached;
    for (const auto& [host, link] : links) reached.push_back(host);
    const std::vector<std::string> told =
        backend_.all_gather_bytes(fmt::format("{}\n{}", fmt::join(reached, " "), problem_));
    for (const std::string& text : told)
      if (obstacle.empty()) obstacle = text.substr(text.find('\n') + 1);
    if (listener_)
      for (auto& [host, link] : listener_->accept(token, callers(told), kForGreeting))
        links.emplace(host, std::move(link));
    return links;
  }

  std::vector<int> ranks_of(int host) const { return ranks_[static_cast<std::size_t>(host)]; }

 private:
  Meeting open() {
    Meeting mine;
    mine.token = (std::uint64_t{std::random_device{}()} << 32) | std::random_device{}();
    if (own_ < 0) return mine;
    problem_ = shortage_of_files(firsts_.size());
    if (!problem_.empty()) return mine;
    try {
      listener_ = std::make_unique<LinkListener>(interface_ ? interface_->address : 0);
      mine.port = listener_->port();
    } catch (const Error& error) {
      problem_ = fmt::format("host {}: {}", host_name(), error.what());
    }
    if (interface_) {
      mine.addresses = {interface_->address};
      return mine;
    }
    for (const NetworkInterface& own : ours_)
      if (own.address != 0 && own.is_up && !own.is_loopback) mine.addresses.push_back(own.address);
    return mine;
  }

  /// Those with lower numbers.
  std::map<int, HostLink> call_lower(const std::vector<Meeting>& meetings, std::uint64_t token) {
    std::map<int, HostLink> links;
    if (!listener_) return links;
    const auto end = std::chrono::steady_clock::now() + kForAll;
    for (int host = 0; host < own_; ++host) {
      const Meeting& meeting = meetings[static_cast<std::size_t>(host)];
      if (meeting.port == 0) continue;  // which says so
      std::string why = "it has no address that leads there";
      for (const std::uint32_t address : addresses_to_try(meeting.addresses, ours_)) {
        const auto left = std::chrono::duration_cast<milliseconds>(end - std::chrono::steady_clock::now());
        try {
          links.emplace(host, connect_link(address, meeting.port, interface_ ? interface_->address : 0, {token, own_},
                                           std::clamp(left, 1ms, kForOne)));
          break;
        } catch (const Error& error) {
          why = error.what();
        }
      }
      if (!links.contains(host) && problem_.empty())
        problem_ = fmt::format("from host {} to that of rank {}: {}", host_name(), ranks_of(host).front(), why);
    }
    return links;
  }

  /// Hosts that have called this one.
  std::vector<int> callers(const std::vector<std::string>& told) const {
    std::vector<int> hosts;
    for (int host = own_ + 1; host < static_cast<int>(firsts_.size()); ++host) {
      std::istringstream stream(told[static_cast<std::size_t>(firsts_[static_cast<std::size_t>(host)])]);
      for (int called = 0; stream >> called;)
        if (called == own_) hosts.push_back(host);
    }
    return hosts;
  }

  Backend& backend_;
  std::optional<NetworkInterface> interface_;
  std::vector<NetworkInterface> ours_;
  std::vector<int> firsts_;              // by host: its first rank
  std::vector<std::vector<int>> ranks_;  // by host
  int own_ = -1;                         // this host's number, on its first rank
  std::unique_ptr<LinkListener> listener_;
  std::string problem_;
};

}  // namespace

std::unique_ptr<Heartbeats> make_heartbeats(Backend& backend, const std::shared_ptr<StatusBoard>& board,
                                            const std::optional<NetworkInterface>& interface, std::string& obstacle) {
  const std::vector<int>& firsts = board->first_ranks();
  const bool is_one_host = std::ranges::all_of(firsts, [&](int first) { return first == firsts.front(); });
  if (is_one_host || !board->obstacle().empty()) return nullptr;
  Connector connector(backend, *board, interface);
  std::vector<FarHost> hosts;
  for (auto& [host, link] : connector.connect(obstacle)) hosts.push_back({connector.ranks_of(host), std::move(link)});
  return hosts.empty() ? nullptr : std::make_unique<Heartbeats>(board, std::move(hosts));
}

}  // namespace tandem::comm

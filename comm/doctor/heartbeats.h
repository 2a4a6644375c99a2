// What ranks show, from host to host: the first rank of each sends it to those of all others, a few times a second.
#pragma once

#include "tandem/comm/doctor/heartbeat_frame.h"
#include "tandem/comm/doctor/host_links.h"
#include "tandem/comm/doctor/status_board.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tandem::comm {

/// Another host, with a connection to it.
struct FarHost {
  std::vector<int> ranks;  ///< the first one has the other end
  HostLink link;
  FrameReader reader = {};
  std::string unsent = {};
  std::int64_t heard_at = 0;  ///< nanoseconds of this host's steady clock
};

/// Of the first rank of a host; used by its watchdog alone. Sends what the ranks of this host show to all other hosts
/// every 250 ms, with more than 25 hosts every 10 ms for each, at most every 500 ms, and shows on the board what comes
/// from there.
///
/// What is seen of a host besides: the first rank's process has ended where its connection is closed; it does not run
/// (stopped, or held) where its host confirms what is sent and nothing comes. Where neither comes, the host or the
/// network is gone: its ranks count as unknown (RankView::is_known) after kSilence.
class Heartbeats {
 public:
  /// Sends a first time.
  Heartbeats(std::shared_ptr<StatusBoard> board, std::vector<FarHost> hosts);

  /// Reads what has come, and sends what is due. Never waits.
  void beat();
  /// Sends now what this host's ranks show, behind what has not gone yet.
  void tell();
  /// The same for the last time: that this rank has left.
  void finish();

 private:
  void send();
  void read(FarHost& host, std::int64_t now);
  void judge(const FarHost& host, std::int64_t now);

  std::shared_ptr<StatusBoard> board_;
  std::vector<FarHost> hosts_;
  std::int64_t interval_, next_ = 0;
};

/// Those of a group: null on all but the first ranks of hosts, and where all ranks share a host. Collective over the
/// backend. `interface`: whose network they go by; nothing: any by which hosts reach each other. Hosts that cannot be
/// connected within some seconds stay unknown, and `obstacle` says so, on all ranks alike.
std::unique_ptr<Heartbeats> make_heartbeats(Backend& backend, const std::shared_ptr<StatusBoard>& board,
                                            const std::optional<NetworkInterface>& interface, std::string& obstacle);

}  // namespace tandem::comm

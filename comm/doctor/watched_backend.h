// A backend that shows what it does, and a watchdog that names the rank that the others wait for.
#pragma once

#include "tandem/comm/backends/backend.h"
#include "tandem/comm/doctor/watchdog.h"
#include "tandem/comm/launch/network_interface.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tandem::comm {

/// How a group is watched.
struct WatchOptions {
  double timeout = 30.0;  ///< seconds that a wait may take; 0: any time
  /// Before each collective all ranks compare what they are about to do, and before each message its two ranks: they
  /// throw Error where it does not fit. Slower, and nothing is done with wrong arguments. A send then waits for its
  /// receive.
  bool checks = false;
  /// By which hosts tell each other what their ranks do; nothing: any by which they reach each other.
  std::optional<NetworkInterface> interface = {};
  bool tells_hosts = true;            ///< whether hosts are connected for that at all
  std::vector<int> whole_ranks = {};  ///< by rank, their numbers in the group that this one was split off; empty: same
  /// What makes the waits of this rank end, by an error of this text, when a fault is found. Where there is none, and
  /// where the rank has not left the group two seconds later, the text is written to stderr behind "error: rank R: ",
  /// and the process ends with exit code 2.
  std::function<void(const std::string& text)> on_fault = {};
  /// Ends all ranks with exit code 2, as their launcher does it: called by one of them, in any thread. Empty: each ends
  /// by itself.
  std::function<void()> end_all = {};
};

/// The seconds of TANDEM_COMM_TIMEOUT, 30 where it is not set. Throws Error where it is no number from 0 on.
double default_timeout();

/// `backend`, watched. Collective. One rank is not watched. `notice`: which ranks do not see each other, and why, or
/// "".
std::unique_ptr<Backend> watch(std::unique_ptr<Backend> backend, const WatchOptions& options, std::string& notice);

/// From now on, what all ranks show is written to this file when a fault is found: what tandem_doctor reads. "":
/// nowhere. Of the whole process.
void save_statuses_to(const std::string& path);

}  // namespace tandem::comm

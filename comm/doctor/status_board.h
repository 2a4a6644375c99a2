// The statuses of all ranks of a group, in memory that the ranks of a host share.
#pragma once

#include "tandem/comm/backends/backend.h"
#include "tandem/comm/doctor/diagnosis.h"
#include "tandem/comm/transports/shared_memory/shared_memory.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace tandem::comm {

/// What ranks show is seen by the other ranks of their host, and outlives the rank that shows it. Of ranks of other
/// hosts only host and process are known here, and what show_far() was given.
class StatusBoard {
 public:
  /// The name of the memory's file in /proc/PID/fd of each of its processes.
  static constexpr const char* kFileName = "tandem-status";

  /// A host of which nothing was heard for so long may be gone: nothing is known of its ranks then.
  static constexpr std::chrono::milliseconds kSilence{1500};

  /// Collective over the backend. `timeout`: shown, in seconds. `whole_ranks`: by rank, their numbers in the group that
  /// this one was split off; empty: the same. Where ranks of a host share no memory each sees itself
  /// alone, and obstacle() says why.
  StatusBoard(Backend& backend, double timeout, std::span<const int> whole_ranks = {});

  const std::string& obstacle() const { return obstacle_; }
  RankStatus& mine() { return statuses_[static_cast<std::size_t>(place_.rank)]; }
  const Place& place() const { return place_; }
  std::span<const RankStatus> statuses() const { return statuses_; }
  /// By rank: the first rank of its host.
  const std::vector<int>& first_ranks() const { return first_ranks_; }
  /// A look at all ranks, now.
  GroupView look() const;
  /// The same at the ranks of this host.
  std::vector<RankView> look_here() const;
  /// Shows what another host tells of one of its ranks, `now` of this host's clock; by one rank of this host.
  void show_far(const RankView& view, std::int64_t now);
  /// Shows what can be seen from here of the process of such a rank that is in the group.
  void show_far_state(int rank, ProcessState state);
  /// Writes all statuses to a file that view_of_file() reads; whether it could be written.
  bool save(const std::string& path) const;

 private:
  Place place_;
  std::vector<int> first_ranks_;
  std::string obstacle_;
  std::shared_ptr<SharedMemory> memory_;
  std::vector<std::byte> own_memory_;  // in place of it
  std::span<RankStatus> statuses_;
};

/// `now`: nanoseconds of the steady clock.
GroupView view_of(std::span<const RankStatus> statuses, std::int64_t now);

/// Nanoseconds of this host's steady clock, the same for all its processes.
std::int64_t steady_nanoseconds();

/// What a file of StatusBoard::save() shows, as it was then. Throws Error where it is no such file.
GroupView view_of_file(const std::string& path);

/// What the boards of a running process show, one for each of its groups. Throws Error where there is none.
std::vector<GroupView> views_of_process(std::int64_t process);

}  // namespace tandem::comm

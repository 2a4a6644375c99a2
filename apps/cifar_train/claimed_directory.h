// A run directory of one's own where none is named: runs/<date>-<model>-<n>.
#pragma once

#include "settings.h"

#include "tandem/comm/process_group.h"

#include <cstdint>
#include <string>
#include <vector>

namespace tandem::apps {

/// A folder that this process has made, or holds: no other run goes on from it by itself for as long. One without a
/// path is of a run that keeps nothing, or of another rank.
class ClaimedDirectory {
 public:
  ClaimedDirectory() = default;
  /// Holds a folder, and removes what killed processes left of files that they wrote there. `made`: the folders that
  /// this process has just made for it, itself the last. Throws Error where another process holds it.
  ClaimedDirectory(std::string path, std::vector<std::string> made);
  /// Removes those that were made if nothing was put into them.
  ~ClaimedDirectory();
  ClaimedDirectory(ClaimedDirectory&& other) noexcept;
  ClaimedDirectory& operator=(ClaimedDirectory&& other) noexcept;

  const std::string& path() const { return path_; }
  /// Whether this process has made it.
  bool is_new() const { return !made_.empty(); }

  /// Where somebody removed or moved the folder: makes it again and holds it. True if so; one system call if not.
  /// Throws Error where it cannot be made, or another process holds what is there now.
  bool make_again();

 private:
  void hold();

  std::string path_;
  int descriptor_ = -1;
  std::vector<std::string> made_;         // from the outermost
  std::uint64_t device_ = 0, inode_ = 0;  // of the folder that is held
};

/// Makes `runs`/<date>-<model>-<n> with the first n that is free, in one step, so that two processes never get the
/// same. Throws Error where that cannot be done, and says that --no-run-dir does without.
ClaimedDirectory make_run_directory(const std::string& runs, const std::string& model);

/// The newest folder that make_run_directory() made for this model, whose run is of this data set and has not come to
/// its end by its environment.json, has checkpoints, and is held by no process; one without a path where there is none.
ClaimedDirectory unfinished_run_directory(const std::string& runs, const std::string& model,
                                          const std::string& dataset);

/// Settles where the run is kept, and in it the log and the weights that the settings put nowhere else: the same on all
/// ranks. Rank 0 holds the folder. Collective. Throws AgreedError.
ClaimedDirectory settle_run_directory(Settings& settings, comm::ProcessGroup& group);

}  // namespace tandem::apps

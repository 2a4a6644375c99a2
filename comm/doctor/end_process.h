#pragma once

#include "tandem/comm/doctor/diagnosis.h"
#include "tandem/comm/doctor/status_board.h"

#include <functional>
#include <memory>
#include <string>

namespace tandem::comm {

/// What a rank says and does at its end.
struct LastWords {
  std::string text;
  bool is_teller = false;         ///< also writes the file of save_statuses_to(), and says so
  std::function<void()> end_all;  ///< of the teller: as WatchOptions::end_all
};

/// A board of this process. What is told of one group is told of the others of this process as well.
void follow_for_end(const std::shared_ptr<StatusBoard>& board);

/// Whether the rank of `board` is the one that tells all lines, of that group or of another one that it is in.
bool tells_all(StatusBoard& board);

/// Writes the text to stderr behind "error: rank R: ", waits until the other ranks of this host that can, in all groups
/// of this process, have written theirs, and ends those of the blamed ranks on this host that cannot end themselves.
/// Then the teller ends all ranks; each ends with exit code 2 after some seconds at the latest, whatever its other
/// threads do. A second thread of a rank that calls it, of this group or another one, tells nothing, and waits for that
/// end. Rank R is the number in the group that all others were split off.
[[noreturn]] void end_process(StatusBoard& board, const GroupView& group, const Diagnosis& diagnosis,
                              const LastWords& words);

}  // namespace tandem::comm

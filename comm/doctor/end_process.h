#pragma once

#include "tandem/comm/doctor/diagnosis.h"
#include "tandem/comm/doctor/status_board.h"

#include <functional>
#include <string>

namespace tandem::comm {

/// What a rank says and does at its end.
struct LastWords {
  std::string text;
  bool is_teller = false;         ///< also writes the file of save_statuses_to(), and says so
  std::function<void()> end_all;  ///< of the teller: as WatchOptions::end_all
};

/// Writes the text to stderr behind "error: rank R: ", waits until the other ranks of this host that can have written
/// theirs, and ends those of the blamed ranks on this host that cannot end themselves. Then the teller ends all ranks;
/// each ends with exit code 2 after some seconds at the latest, whatever its other threads do. A second thread of a
/// rank that calls it tells nothing, and waits for that end.
[[noreturn]] void end_process(StatusBoard& board, const GroupView& group, const Diagnosis& diagnosis,
                              const LastWords& words);

}  // namespace tandem::comm

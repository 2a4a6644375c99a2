// What is wrong with ranks that wait in a collective.
#pragma once

#include "tandem/comm/doctor/diagnosis.h"

#include <string>
#include <string_view>
#include <vector>

namespace tandem::comm {

/// Whom a collective waits for.
struct Missing {
  std::vector<int> ranks = {};   ///< that have not entered it; where all have, those that do not wait for it
  std::vector<int> silent = {};  ///< of which nothing is known
  bool have_entered = false;     ///< whether `ranks` have
};

Missing missing_in(const GroupView& group, const OperationView& operation);

/// Those of `ranks` that cannot go on; else those that neither do long work nor wait in another group; else those that
/// do the latter; else all. None that has told what is wrong.
std::vector<int> worst_of(const GroupView& group, const std::vector<int>& ranks);

/// What `waiting` waits for in a collective, `blamed` being those of `missing` that are to blame, if any.
Diagnosis explain_collective(const GroupView& group, const RankView& waiting, const OperationView& operation,
                             const Missing& missing, std::vector<int> blamed);

/// Of a rank that has told what is wrong. `what`: ", and rank 2 waits in barrier #3"; may be empty.
Diagnosis explain_told(const GroupView& group, const RankView& rank, std::string_view what);

std::string_view remedy_for_end(RankEnd end);

/// What to do about a rank that the others wait for.
std::string remedy_for(const GroupView& group, const RankView& rank);

/// What to do about a rank of which nothing is known.
std::string_view remedy_for_silence(const RankView& rank);

}  // namespace tandem::comm

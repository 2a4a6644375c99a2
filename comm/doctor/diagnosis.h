// From what the ranks of a group show of themselves to what is wrong with them, in words.
#pragma once

#include "tandem/comm/doctor/process_state.h"
#include "tandem/comm/doctor/rank_status.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tandem::comm {

/// A look at one rank. Times are seconds before the look.
struct RankView {
  int rank = 0;
  int whole_rank = -1;       ///< in the group that this one was split off; -1: the same
  bool is_known = false;     ///< whether it shows anything
  bool is_far = false;       ///< of another host, whose ranks tell of it
  double heard_ago = 0.0;    ///< of one that is far: since that host was last heard of; 0 where it never was
  bool is_inferred = false;  ///< whether `state` was found out since then, from its connection
  std::string host;
  std::int64_t process = 0;
  ProcessState state = ProcessState::unknown;
  RankEnd end = RankEnd::none;
  std::uint64_t started = 0, finished = 0;  ///< collectives
  double finished_ago = 0.0;
  bool is_waiting = false;
  OperationView waits_for;  ///< number 0 where that is not known
  double waiting_time = 0.0;
  std::string step;  ///< "step 2 of ring, for rank 3"; may be empty
  bool is_in_long_work = false;
  bool waits_elsewhere = false;            ///< in another group, of which `activity` tells
  bool has_found_fault = false;            ///< its watchdog has
  std::string activity;                    ///< "backward conv2d [64, 16, 32, 32]"; may be empty
  std::vector<OperationView> collectives;  ///< the last ones that it started, by rising number
  std::vector<OperationView> messages;
};

/// A look at all ranks of a group, by rank.
struct GroupView {
  std::vector<RankView> ranks;
  std::string backend;   ///< "native"; empty where that is not known
  double timeout = 0.0;  ///< seconds; 0 for none
};

/// What is wrong. `is_final`: a look a moment later would show the same.
struct Diagnosis {
  bool is_final = false;
  std::vector<int> blamed = {};         ///< ranks that the others wait for
  std::string cause = {};               ///< one line
  std::vector<std::string> lines = {};  ///< of the others: what they wait for
  std::string remedy = {};
};

/// What cannot become right: a rank that has ended or left while another waits for it, and ranks whose collectives of
/// one number differ. Nothing where all may still go on.
std::optional<Diagnosis> find_fault(const GroupView& group);

/// The rank that has waited for longest and can still say so, of those that do not wait for long work where there are
/// any; -1 where none waits.
int longest_waiting(const GroupView& group);

/// The same for a group one of whose ranks, `waiting`, has waited for longer than it should. Whom it waits for is not
/// to blame where that rank waits itself: whoever stands at the end of such waits is.
Diagnosis explain_wait(const GroupView& group, int waiting);

/// Where ranks have told what is wrong, none of which waits in this group: that they have. Their waits in another one
/// are what it is about, and waits in this one may be well. Nothing where they are for ranks that cannot go on.
std::optional<Diagnosis> explain_alarm(const GroupView& group);

/// The same of ranks that do not leave the group, `stayed`, for which those that have left wait.
Diagnosis explain_leaving(const GroupView& group, const std::vector<int>& stayed);

/// Whether all that `waiting` waits for are ranks that do long work, which they may, or that wait for such ranks.
bool waits_for_long_work(const GroupView& group, int waiting);

/// What a look from outside tells of ranks that may all be well: a fault; of the longest wait what explain_wait() says,
/// where it takes a second or longer; whom that rank waits for, where it is shorter. Nothing where none waits, and of
/// a short wait where news of other hosts may be older.
std::optional<Diagnosis> explain_look(const GroupView& group);

/// Whether `rank` is the one that tells all lines of what is wrong: the lowest that can. Others tell the cause.
bool is_teller(const GroupView& group, int rank);

/// Lines, a line each: the cause first.
std::string text_of(const Diagnosis& diagnosis);

/// "ranks 0, 1 of this group are ranks 3, 1 of all" where their numbers differ, else "".
std::string numbers_of(const GroupView& group);

/// What each rank is doing, a line each: for whoever looks from outside.
std::string text_of(const GroupView& group);

}  // namespace tandem::comm

// What is said of a rank, in words.
#pragma once

#include "tandem/comm/doctor/diagnosis.h"

#include <string>
#include <vector>

namespace tandem::comm {

bool is_in(const std::vector<int>& ranks, int rank);

const RankView& rank_of(const GroupView& group, int rank);

/// "rank 2", "ranks 0, 1, 3", "ranks 0 to 6, 8"
std::string names_of(const std::vector<int>& ranks);

/// "rank 2 (host node7, pid 411, stopped)"
std::string name_of(const RankView& rank);

bool has_ended(const RankView& rank);

/// Whether it can still do something by itself.
bool can_go_on(const RankView& rank);

/// Whether it has told what is wrong, and does nothing more: another one is to blame for its end.
bool has_told(const RankView& rank);

/// Whether it waits for a known operation of others, or did so until it told what is wrong.
bool is_held_up(const RankView& rank);

/// What a rank that the others wait for is in: "it last finished #1041, 2.9 s ago, and is in backward conv2d".
std::string what_it_does(const RankView& rank);

/// Those that wait, by what they wait for, but for `blamed`: "ranks 0, 1 wait in all_reduce #6 sum f32[4]".
std::vector<std::string> waiting_lines(const GroupView& group, const std::vector<int>& blamed);

}  // namespace tandem::comm

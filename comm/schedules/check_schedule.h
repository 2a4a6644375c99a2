// A schedule followed on symbols before any data move: what each chunk would hold at the end, on every rank.
// Example:
//     #include "tandem/comm/schedules/algorithms.h"
//     const Schedule tree = binomial_broadcast(5, 2);
//     check_schedule(tree, broadcast_goal(5, tree.chunks, 2));  // throws Error if a rank would not get rank 2's chunk
#pragma once

#include "tandem/comm/schedules/schedule.h"

#include <functional>
#include <set>
#include <vector>

namespace tandem::comm {

/// What a collective is to leave: whose elements, combined, each chunk holds.
struct Goal {
  int ranks = 1;
  int chunks = 1;
  /// Whether `rank` holds its own elements of `chunk` at the beginning.
  std::function<bool(int rank, int chunk)> has;
  /// The ranks whose elements, each once, are to be in `chunk` of `rank` at the end; empty: whatever.
  std::function<std::set<int>(int rank, int chunk)> wants;
};

/// Every rank ends with all ranks' elements combined.
Goal all_reduce_goal(int ranks, int chunks);
/// The same for the root alone.
Goal reduce_goal(int ranks, int chunks, int root);
/// Chunk c, one for each rank, ends combined on rank c.
Goal reduce_scatter_goal(int ranks);
/// Every rank ends with the root's elements.
Goal broadcast_goal(int ranks, int chunks, int root);
/// Chunk c, one for each rank, is rank c's at the beginning, and everybody's at the end.
Goal all_gather_goal(int ranks);
/// The same for the root alone.
Goal gather_goal(int ranks, int root);
/// Chunk c, one for each rank, is the root's at the beginning, and also rank c's at the end.
Goal scatter_goal(int ranks, int root);
/// Chunk a * ranks + b goes from rank a to rank b.
Goal all_to_all_goal(int ranks);

/// Follows the schedule with symbols for elements. Throws Error, naming rank, round and chunk, where the goal is not
/// reached, a rank sends or combines what it does not have, elements of a rank would be combined twice, two ranks that
/// want the same would combine in different orders (and so differ in rounding), a message is received that is not sent
/// or sent and not received, or ranks wait for each other in a circle.
void check_schedule(const Schedule& schedule, const Goal& goal);

}  // namespace tandem::comm

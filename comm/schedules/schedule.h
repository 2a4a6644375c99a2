// Collective algorithms as tables: what each rank sends to whom, and what it does with what it receives.
// Example:
//     #include "tandem/comm/schedules/check_schedule.h"
//     #include "tandem/comm/schedules/algorithms.h"
//     const Schedule ring = ring_all_reduce(3);
//     check_schedule(ring, all_reduce_goal(3, ring.chunks));  // throws Error for a schedule that is wrong
//     const std::string table = to_text(ring);                // a line for each round, to print
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tandem::comm {

/// What a rank does with one chunk of the data.
enum class Action : std::uint8_t {
  send,     ///< its elements go to `peer`
  receive,  ///< the peer's elements take their place
  reduce,   ///< the peer's elements are combined with its own
};

/// One line of a rank's part of a schedule.
struct Step {
  int round = 0;  ///< for tables and traces: rounds of all ranks can run at the same time
  Action action = Action::send;
  int peer = 0;
  int chunk = 0;
  /// Of `reduce`: the peer's elements are the left operand. Where two ranks combine the same two values, this keeps
  /// their results equal bit by bit.
  bool peer_is_left = false;
  /// Of `reduce`: the chunk then has the elements of all ranks.
  bool completes = false;

  friend bool operator==(const Step&, const Step&) = default;
};

/// A collective algorithm for a number of ranks. The data are cut into `chunks` parts, which the steps name.
///
/// A rank takes the steps of one chunk in the order in which they are listed: a send takes what the steps before it
/// have left, and nothing is written before the sends listed before it have read. Steps of different chunks do not wait
/// for each other, but messages from one rank to another arrive in the order in which both list them.
struct Schedule {
  std::string name;  ///< of the algorithm: "ring"
  int ranks = 1;
  int chunks = 1;
  std::vector<std::vector<Step>> of_rank;  ///< by rank
};

/// Elements [begin, begin + count) of an array.
struct ElementRange {
  std::int64_t begin = 0;
  std::int64_t count = 0;
};

/// Chunk `chunk` of `total` elements cut into `chunks`: sizes differ by at most one, the larger ones come first.
ElementRange chunk_range(std::int64_t total, int chunks, int chunk);

/// Elements that `rank` sends where `total` elements are cut by chunk_range().
std::int64_t elements_sent(const Schedule& schedule, int rank, std::int64_t total);

/// Rounds from the first to the last step.
int rounds_of(const Schedule& schedule);

/// As text, a line for each round: "1  0>1 c0  1>2 c1  2>0 c2", with "+" behind chunks that the receiver adds.
std::string to_text(const Schedule& schedule);

}  // namespace tandem::comm

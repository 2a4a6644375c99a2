// The ring all-reduce as a table: who sends which chunk to whom, step by step.
//
// P. Patarasuk, X. Yuan: "Bandwidth optimal all-reduce algorithms for clusters of workstations", JPDC 69(2), 2009. The
// elements are cut into one chunk per rank. In n-1 steps of reduce-scatter every rank passes a chunk on to its right
// neighbour, which adds its own part; then each rank holds one chunk of the result. In n-1 steps of all-gather the
// finished chunks go round. A rank sends 2(n-1)/n of the data, which no algorithm can undercut.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tandem::comm {

/// One step of one rank. In the reduce-scatter steps the received chunk is added to this rank's own elements, in the
/// all-gather steps it replaces them. What is received in one step is what is sent in the next.
struct RingStep {
  int send_to = 0;
  int send_chunk = 0;
  int receive_from = 0;
  int receive_chunk = 0;
  bool reduce = false;

  friend bool operator==(const RingStep&, const RingStep&) = default;
};

/// The 2(ranks-1) steps of `rank`; none for one rank.
std::vector<RingStep> ring_schedule(int ranks, int rank);

/// Elements [begin, begin + count) of an array.
struct ElementRange {
  std::int64_t begin = 0;
  std::int64_t count = 0;
};

/// Chunk `chunk` of `total` elements cut into `chunks`: sizes differ by at most one, the larger ones come first.
ElementRange chunk_range(std::int64_t total, int chunks, int chunk);

/// Elements that `rank` sends in an all-reduce of `total` elements: 2(n-1)/n of them, but for rounding.
std::int64_t ring_elements_sent(std::int64_t total, int ranks, int rank);

/// The schedule of all ranks as a text table, one line per step: "1 reduce  0>1 c3   1>2 c0 ...".
std::string ring_schedule_table(int ranks);

}  // namespace tandem::comm

// What a rank does in operations between ranks: entries of a timeline that may run beside the ranges of its threads.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tandem {

/// A step of an operation: one part of its data that goes to a rank, comes from one, or is worked on. Times are those
/// of TimelineEvent; those of waiting, copying and reducing follow each other.
struct CommunicationStep {
  std::string_view action = {};  ///< "send", "receive", "reduce", "copy in", ...: a literal
  int round = -1;                ///< of the algorithm, from 1; -1: it has none
  int peer = -1;                 ///< the other rank of a message; -1: memory that all ranks see
  int chunk = -1, segment = -1;  ///< which part of the data, and which part of that; -1: all
  std::int64_t bytes = 0;        ///< of that part
  std::int64_t begin_ns = 0;
  /// Until it was there or had left, and this rank looked; bringing it to its place, or taking it in; combining it.
  std::int64_t wait_ns = 0, copy_ns = 0, reduce_ns = 0;

  std::int64_t end_ns() const { return begin_ns + wait_ns + copy_ns + reduce_ns; }
};

enum class CommunicationKind : std::uint8_t {
  operation,  ///< what a process group was asked for
  bucket      ///< gradients that are exchanged together, from when they are complete to when the average was seen
};

/// Communication from its start to its end on one rank.
struct CommunicationEvent {
  CommunicationKind kind = CommunicationKind::operation;
  std::string name = {};       ///< "all_reduce average f32[1024]", "bucket 2"
  std::string algorithm = {};  ///< "ring", "shared-memory"; "": not known
  int rank = 0;                ///< of this process, or of this thread
  std::int64_t number = 0;     ///< the same for what meets on other ranks
  std::int64_t bytes = 0;
  std::int64_t begin_ns = 0, duration_ns = 0;
  std::vector<CommunicationStep> steps = {};  ///< in the order in which they ended; none where the backend tells none
};

}  // namespace tandem

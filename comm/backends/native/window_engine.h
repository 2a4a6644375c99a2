// Collectives through memory that all ranks see: each rank combines its own part of everybody's data.
#pragma once

#include "tandem/comm/backends/native/data_views.h"
#include "tandem/comm/backends/native/operation_trace.h"
#include "tandem/comm/backends/native/window_pieces.h"
#include "tandem/comm/collective.h"
#include "tandem/comm/transports/shared_memory/ended_peer.h"
#include "tandem/comm/transports/shared_memory/peer_blocks.h"
#include "tandem/comm/transports/shared_memory/peer_processes.h"
#include "tandem/comm/transports/shared_memory/window.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace tandem::comm {

/// A collective under way.
struct WindowOperation {
  /// `done_here`: others may still read this rank's data, or write to them.
  enum class Stage : std::uint8_t { queued, offered, done_here, staged, complete };

  Collective collective;
  BlockExchange pieces = {};  ///< of collectives that move them
  Stage stage = Stage::queued;
  std::uint64_t number = 0;                                  ///< of the collective, from 1
  int seen = 0;                                              ///< ranks whose offers have come
  std::uint64_t first = 0, end = 0;                          ///< its segments among all that go through the window
  bool is_where_data_are = false;                            ///< others write to this rank's data
  std::vector<std::shared_ptr<SharedMemory>> segments = {};  ///< of data that are combined where they are
  std::string mismatch = {};                                 ///< what did not fit on this rank: its fault at the end
  std::exception_ptr fault = {};                             ///< why it failed: it is complete then
  std::unique_ptr<OperationTrace> trace = {};                ///< of its steps; null where none is recorded

  bool is_complete() const { return stage == Stage::complete; }
};

/// How the ranks of a group come to each other's data, alike on all.
struct DataAccess {
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
  /// Below, two copies through the window are faster than one by the kernel, which takes page by page: only blocks of
  /// this size have large pages (docs/results/2026-11-25-all-reduce.md).
  static constexpr std::int64_t kLeastToRead = std::int64_t{4} << 20;

  std::int64_t reads_from_bytes = kNever;   ///< pieces of memory of so many bytes and more are read where they are
  std::string reading_obstacle = {};        ///< told where it first makes a difference
  std::unique_ptr<PeerBlocks> blocks = {};  ///< those that ranks can map; null where they cannot
};

/// Collectives between the ranks of one host. Each rank offers its data in its cell, and begins when all have: one
/// after another, in the order of the calls, which is one order on all ranks. Then, of all_reduce, reduce and barrier,
/// by size and place:
///
/// - small data are in the cells: every rank combines all of them;
/// - data that every rank has where the others see them, in one shared segment, in blocks of memory that these can map,
///   or in one process, are combined where they are: each rank reads its part of everybody's data, and writes the
///   result to all of them. Nothing is copied;
/// - others go through the window in segments: each rank puts there what others combine, combines its own part, and
///   takes the other parts of the result. One segment is combined while the next is put there.
///
/// Of those that move pieces from rank to rank, and of reduce_scatter, each rank takes, or combines, what is for it:
///
/// - from the cells where all data are small;
/// - from where it is, copied once, where ranks can read each other's memory and that is faster; a rank goes on when
///   all have what is for them;
/// - or from segments that go through the window. One is taken while the next is put there.
///
/// Elements are combined in the order of the ranks, by one rank or by all alike: results have the same bits everywhere.
/// No thread of its own: poll() moves it on, and never waits.
class WindowEngine {
 public:
  WindowEngine(Window window, int rank, std::unique_ptr<PeerProcesses> peers, DataAccess access = {});
  ~WindowEngine();
  WindowEngine(const WindowEngine&) = delete;
  WindowEngine& operator=(const WindowEngine&) = delete;

  bool takes(CollectiveKind kind) const;
  /// It goes on to its end, whoever waits for it or not: other ranks need this one's part.
  std::shared_ptr<WindowOperation> start(const Collective& collective);
  /// True if anything moved. An operation that fails, as where ranks do not call the same collective, keeps its fault.
  bool poll();
  /// For a rank that waits: throws Error where the process of a rank that it waits for has ended.
  void check_peers();
  /// What the first operation under way waits for: "shared memory, for rank 3 to enter"; "" where there is none.
  std::string waits_for() const;
  SharedParts& parts() { return views_.parts(); }
  const PeerProcesses& peers() const { return *peers_; }

 private:
  using Inputs = std::span<const std::byte* const>;
  using Outputs = std::span<std::byte* const>;

  RankArea& mine() const { return window_.area(rank_); }
  bool advance(WindowOperation& operation);
  void offer(WindowOperation& operation);
  bool may_be_read(const Collective& collective, const Offer& offer) const;
  bool try_begin(WindowOperation& operation);
  void stage_segments(WindowOperation& operation, std::int64_t count, std::int64_t in_a_segment);
  void end_here(WindowOperation& operation);
  bool try_end(WindowOperation& operation);
  void fail_here(WindowOperation& operation);
  void keep_data(const std::shared_ptr<WindowOperation>& operation);

  // window_reductions.cpp
  bool sees_all_data(const WindowOperation& operation) const;
  void reduce_cells(WindowOperation& operation);
  void reduce_where_data_are(WindowOperation& operation);
  bool advance_segments(WindowOperation& operation);
  void copy_in(const WindowOperation& operation, std::uint64_t segment);
  void reduce_part(const WindowOperation& operation, std::uint64_t segment);
  void take(const WindowOperation& operation, std::uint64_t segment);

  // window_moves.cpp
  void begin_pieces(WindowOperation& operation);
  bool reads(const ShownPieces& shown);
  void tell_of_two_copies();
  void check_pieces(WindowOperation& operation, const ShownPieces& shown) const;
  void take_pieces(const WindowOperation& operation, const ShownPieces& shown) const;
  bool advance_piece_segments(WindowOperation& operation);
  void copy_in_pieces(const WindowOperation& operation, std::uint64_t segment);
  void take_from_slots(const WindowOperation& operation, std::uint64_t segment);
  void combine_pieces(const WindowOperation& operation, const ShownPieces& shown);
  const std::byte* looked_at(const ShownPieces& shown, int from, std::int64_t begin, std::int64_t bytes);
  void combine_from_slots(const WindowOperation& operation, std::uint64_t segment);

  bool waits_for(const WindowOperation& operation, int rank) const;

  Window window_;
  int rank_;
  std::unique_ptr<PeerProcesses> peers_;
  std::int64_t reads_from_bytes_;
  std::string reading_obstacle_;
  bool has_told_ = false;  // of it
  DataViews views_;
  std::deque<std::shared_ptr<WindowOperation>> queue_;
  std::uint64_t number_ = 0;                            // of collectives that were offered
  std::uint64_t copied_ = 0, reduced_ = 0, taken_ = 0;  // segments
  std::vector<const std::byte*> inputs_;                // by rank, used again and again
  std::vector<std::byte*> outputs_;
  std::unique_ptr<Storage> copies_;  // of parts of others' pieces
  EndedPeer ended_;
};

}  // namespace tandem::comm

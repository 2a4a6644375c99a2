// The window: what ranks of one host tell each other through memory, and where data wait for each other.
#pragma once

#include "tandem/comm/collective.h"
#include "tandem/comm/transports/shared_memory/shared_memory.h"
#include "tandem/core/cpu_allocator.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace tandem::comm {

/// Two cache lines: processors fetch pairs.
constexpr std::size_t kSharedLineBytes = 128;

/// A number that one rank counts up and others read. What the rank wrote before is seen by whoever reads the number.
struct alignas(kSharedLineBytes) Counter {
  std::atomic<std::uint64_t> value{0};

  std::uint64_t get() const { return value.load(std::memory_order_acquire); }
  void set(std::uint64_t now) { value.store(now, std::memory_order_release); }
};

/// Where other ranks find data of a rank.
struct DataPlace {
  enum class Kind : std::uint8_t {
    hidden,   ///< nowhere
    segment,  ///< in its part of a segment that all ranks have made
    block,    ///< in a block of its process that others can map
    address,  ///< ranks are threads of one process
  };

  Kind kind = Kind::hidden;
  std::int32_t segment = 0;
  std::int64_t offset = 0;    ///< in its part of the segment, or in the block
  std::uint64_t layout = 0;   ///< of the block
  std::uint64_t address = 0;  ///< in its process
};

/// What a rank brings to a collective: all but the place of its memory must be alike on all ranks.
struct Offer {
  std::int64_t count = 0;
  std::int32_t root = 0;
  CollectiveKind kind = CollectiveKind::barrier;
  DType dtype = DType::u8;
  ReduceOp op = ReduceOp::sum;
  std::uint64_t address = 0;  ///< of the memory that its pieces are parts of, in its process
  std::int64_t bytes = 0;     ///< of that memory
  bool is_readable = true;    ///< by other processes, as far as they read of it
};

/// What a rank has for one other: a part of the memory that it offers.
struct Piece {
  std::int64_t begin = 0, bytes = 0;
};

/// What a rank shows the others of one collective. Small data, and a piece for each rank, are in the same place as the
/// flag.
struct alignas(kSharedLineBytes) Cell {
  static constexpr std::int64_t kPayloadBytes = 4096;

  std::atomic<std::uint64_t> number{0};  ///< of the collective; written last
  std::atomic<bool> has_failed{false};   ///< on this rank: for those that see `done`
  Offer offer;
  DataPlace input = {}, output = {};                    ///< of data that are not in the payload
  CpuAllocator::BlockInFile input_block, output_block;  ///< that these are in; looked at once by each rank
  alignas(16) std::byte payload[kPayloadBytes];

  /// In the payload: by rank, and what is left behind them.
  Piece* pieces() { return reinterpret_cast<Piece*>(payload); }
  std::byte* data_behind_pieces(int ranks) { return payload + ranks * std::int64_t{sizeof(Piece)}; }
  static constexpr std::int64_t bytes_behind_pieces(int ranks) {
    return kPayloadBytes - ranks * std::int64_t{sizeof(Piece)};
  }
};

/// The part of the window that one rank writes and all read. Collectives are numbered from 1. Cells take turns: a rank
/// begins collective n + 2 after it has seen everybody's cell of n + 1, and they wrote that after they had read n.
struct RankArea {
  Cell cells[2];
  Counter copied;   ///< segments that this rank has put into its slots
  Counter reduced;  ///< segments of which this rank has combined its part
  Counter taken;    ///< segments whose result this rank has
  Counter done;     ///< the last collective for which this rank reads and writes nothing of others any more

  Cell& cell(std::uint64_t number) { return cells[number % 2]; }
};

/// Of a group whose ranks share a host.
class Window {
 public:
  /// Segments of private data that are on their way through the window, at once and of this many bytes.
  static constexpr std::int64_t kSlots = 2;
  static constexpr std::int64_t kSegmentBytes = 256 * 1024;
  /// Of whom a payload has pieces, with as much again for their data.
  static constexpr int kMostRanksOfPieces = Cell::kPayloadBytes / sizeof(Piece) / 2;

  /// `memory` has part_bytes(ranks) bytes for each rank, zeros at first.
  Window(std::shared_ptr<SharedMemory> memory, int ranks);
  static std::int64_t part_bytes(int ranks);

  RankArea& area(int rank) const { return *reinterpret_cast<RankArea*>(start_of(rank)); }
  /// A whole segment of a rank's elements, and that rank's part of the result.
  std::byte* input_slot(int rank, std::uint64_t segment) const;
  std::byte* result_slot(int rank, std::uint64_t segment) const;
  /// Elements of a segment.
  std::int64_t segment_elements(std::int64_t element_bytes) const { return kSegmentBytes / element_bytes; }
  /// The least that the ranks' counters have reached.
  std::uint64_t least(Counter RankArea::* counter) const;
  int ranks() const { return ranks_; }
  const std::shared_ptr<SharedMemory>& memory() const { return memory_; }

 private:
  static std::int64_t result_bytes(int ranks);
  std::byte* start_of(int rank) const { return memory_->data() + rank * part_bytes_; }

  std::shared_ptr<SharedMemory> memory_;
  int ranks_;
  std::int64_t result_bytes_;
  std::int64_t part_bytes_;
};

}  // namespace tandem::comm

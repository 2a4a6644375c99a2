// The collectives that are timed, one row each: what their bytes are, what they are multiplied by for the bandwidth of
// the bus, how they are called, and what a rank must hold afterwards.
#pragma once

#include "tandem/comm/process_group.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tandem::allreduce_bench {

/// What a rank holds in one of its two tensors: nothing, one part, or a part for (or from) each rank. Of collectives of
/// rows: as many rows as rows_of() says, or all of them; a row is an element.
enum class Extent : std::uint8_t { none, part, all, rows, all_rows };

/// A rank's tensors. In place, a collective reads and writes `input`; what it makes itself is in `made`, one tensor
/// behind the other, and `output` is not defined then.
struct Buffers {
  Tensor input, output;
  std::vector<Tensor> made = {};

  /// What the collective gave: a tensor above, or the elements of `made` in one.
  Tensor result(bool in_place) const;
};

/// Elements that a rank must hold: those of one rank's input from `begin` on, or of the reduction of all inputs.
struct ExpectedPart {
  static constexpr int kReduction = -1;
  int from = kReduction;
  std::int64_t begin = 0;
  std::int64_t count = 0;

  friend bool operator==(const ExpectedPart&, const ExpectedPart&) = default;
};

/// Where a rank stands, and the elements of a part.
struct PartPlace {
  int rank = 0;
  int ranks = 1;
  std::int64_t part = 0;
};

/// Rows from (or for) a rank: one and a half parts of ranks with an even number, half a part of the others, and of the
/// last of an odd number of ranks one, which makes as many rows as there are elements in all parts.
std::int64_t rows_of(const PartPlace& place);

/// Sizes and factors are those of nccl-tests (doc/PERFORMANCE.md, and `GetBw` of each of its programs). Roots are
/// rank 0.
struct BenchCollective {
  std::string_view name;   ///< as --collective has it
  std::string_view bytes;  ///< what they are of
  Extent input, output;    ///< where any is of all parts or of rows, the bytes are those of all parts together
  bool reduces;            ///< by a ReduceOp
  bool out_of_place, in_place;
  std::string_view factor;  ///< what bytes per second are multiplied by for the bus, as text; empty without bytes
  double (*bus_factor)(int ranks);
  void (*run)(comm::ProcessGroup& group, Buffers& buffers, bool in_place, comm::ReduceOp op);
  /// By rank, in the order of the elements; nothing where a rank receives nothing.
  std::vector<ExpectedPart> (*expected)(const PartPlace& place);

  bool is_cut() const { return (input != Extent::part && input != Extent::none) || output == Extent::all; }
  bool has_bytes() const { return input != Extent::none; }
};

/// "all_reduce" first.
std::span<const BenchCollective> bench_collectives();

std::vector<std::string> bench_collective_names();

/// Those of these names, each once; "all" stands for all that so many ranks can call. Throws Error for an unknown name,
/// and for send_receive on one rank.
std::vector<const BenchCollective*> find_collectives(const std::vector<std::string>& names, int ranks);

/// Which shared tensors, algorithms, predictions and the roofline are of.
bool is_all_reduce(const BenchCollective& collective);

/// Elements of a part, for bytes from `least` to `most`, each time `factor` times as many: as many as fit, at least
/// one, and each number once. One size, of no bytes, for what has none.
std::vector<std::int64_t> part_sizes(const BenchCollective& collective, std::int64_t least, std::int64_t most,
                                     std::int64_t factor, int ranks, std::int64_t element_bytes);

/// Of a tensor with this extent: {part}, {ranks, part}, {rows_of(place)} or {ranks * part}.
Shape shape_of(Extent extent, const PartPlace& place);

}  // namespace tandem::allreduce_bench

// One operation between ranks as a value: what a ProcessGroup hands to its backend, and what texts and logs name.
// Example:
//     const std::string_view word = name_of(ReduceOp::average);  // "average"
#pragma once

#include "tandem/core/out.h"
#include "tandem/core/tensor.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tandem::comm {

/// How the elements of several ranks become one.
enum class ReduceOp : std::uint8_t { sum, product, average, min, max };

/// "sum", ...
std::string_view name_of(ReduceOp op);

/// What the ranks of a group do together, or two of them.
enum class CollectiveKind : std::uint8_t {
  send,
  receive,
  broadcast,
  all_reduce,
  reduce,
  all_gather,
  gather,
  scatter,
  reduce_scatter,
  all_to_all,
  barrier,
};

/// How many kinds there are; they count from 0.
constexpr int kCollectiveKinds = 11;

/// "all_reduce", ...
std::string_view name_of(CollectiveKind kind);

/// Whether it goes from one rank to another, beside the collectives of all ranks.
constexpr bool is_message(CollectiveKind kind) {
  return kind == CollectiveKind::send || kind == CollectiveKind::receive;
}

/// Whether elements are combined by a ReduceOp.
constexpr bool is_reduction(CollectiveKind kind) {
  return kind == CollectiveKind::all_reduce || kind == CollectiveKind::reduce || kind == CollectiveKind::reduce_scatter;
}

/// An operation on flat memory. `input` and `output` hold, in elements of `dtype`:
///
/// | kind | input | output |
/// |---|---|---|
/// | send | count() | nothing |
/// | receive | nothing | count() |
/// | broadcast | count(), on the root | count(); on the root the input itself |
/// | all_reduce | count() | count(); may be the input |
/// | reduce | count() | count() on the root, where it may be the input; elsewhere nothing |
/// | all_gather | counts[rank] | all counts, by rank; the input may be its place in it |
/// | gather | counts[rank] | the same on the root, elsewhere nothing |
/// | scatter | on the root all counts, by rank | counts[rank]; on the root it may be its place in the input |
/// | reduce_scatter | all counts, by rank | counts[rank], not in the input |
/// | all_to_all | counts[r] for each rank r | receive_counts[r] from each rank r, not in the input |
/// | barrier | nothing | nothing |
///
/// Memory belongs to the operation until it is complete; the tensors keep it alive.
struct Collective {
  CollectiveKind kind = CollectiveKind::barrier;  ///< what is done
  DType dtype = DType::u8;                        ///< of the elements
  ReduceOp op = ReduceOp::sum;                    ///< of reductions
  int peer = 0;                                   ///< the root, or the other rank of a message
  int tag = 0;                                    ///< of messages: from 0 to kMaxMessageTag
  std::vector<std::int64_t> counts = {};          ///< one number, or one for each rank
  std::vector<std::int64_t> receive_counts = {};  ///< of all_to_all
  /// The first element of what this rank gives, and of what it gets; both may be null where the kind or the rank has
  /// none.
  /// @{
  const void* input = nullptr;
  void* output = nullptr;
  /// @}
  Tensor input_owner = {}, output_owner = {};  ///< undefined where there is none

  /// The only count, or the first.
  std::int64_t count() const { return counts.empty() ? 0 : counts.front(); }
  /// The sum of `counts`.
  std::int64_t total() const;
  /// Of so many elements.
  std::int64_t bytes(std::int64_t elements) const { return elements * size_of(dtype); }
};

/// Of all elements of a dense tensor, in place: a reduction or a broadcast, with rank 0 for the root.
Collective in_place(CollectiveKind kind, const Out& tensor, ReduceOp op = ReduceOp::sum);

/// The largest tag of a message that a program may use.
constexpr int kMaxMessageTag = 8191;

/// The largest tag of a message that a backend carries: twice as many as programs have are those of ranks that tell
/// each other what their messages are (comm/doctor/checked_messages.h).
constexpr int kMaxCarriedTag = 3 * (kMaxMessageTag + 1) - 1;

/// "all_reduce sum f32[1024]", "broadcast u8[12] from rank 3", "all_gather f32[4, 5, 4]"
std::string describe(const Collective& collective);

}  // namespace tandem::comm

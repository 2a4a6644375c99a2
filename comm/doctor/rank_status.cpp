// Records in shared memory, and their texts.
#include "tandem/comm/doctor/rank_status.h"

#include <fmt/format.h>

namespace tandem::comm {

bool OperationView::fits(const OperationView& other) const {
  const bool has_root = kind == CollectiveKind::broadcast || kind == CollectiveKind::reduce ||
                        kind == CollectiveKind::gather || kind == CollectiveKind::scatter;
  return kind == other.kind && dtype == other.dtype && count == other.count &&
         (!is_reduction(kind) || op == other.op) && (!has_root || peer == other.peer);
}

std::string describe(const OperationView& operation) {
  const std::string elements = fmt::format("{}[{}]", name_of(operation.dtype), operation.count);
  switch (operation.kind) {
    case CollectiveKind::send:
      return fmt::format("send of {} to rank {} (tag {})", elements, operation.peer, operation.tag);
    case CollectiveKind::receive:
      return fmt::format("receive of {} from rank {} (tag {})", elements, operation.peer, operation.tag);
    case CollectiveKind::barrier:
      return fmt::format("barrier #{}", operation.number);
    case CollectiveKind::all_reduce:
    case CollectiveKind::reduce_scatter:
      return fmt::format("{} #{} {} {}", name_of(operation.kind), operation.number, name_of(operation.op), elements);
    case CollectiveKind::reduce:
      return fmt::format("reduce #{} {} {} to rank {}", operation.number, name_of(operation.op), elements,
                         operation.peer);
    case CollectiveKind::broadcast:
    case CollectiveKind::scatter:
      return fmt::format("{} #{} {} from rank {}", name_of(operation.kind), operation.number, elements, operation.peer);
    case CollectiveKind::gather:
      return fmt::format("gather #{} {} to rank {}", operation.number, elements, operation.peer);
    case CollectiveKind::all_gather:
      return fmt::format("all_gather #{} {}", operation.number, elements);
    case CollectiveKind::all_to_all:
      break;
  }
  return fmt::format("all_to_all #{} {}", operation.number, name_of(operation.dtype));
}

OperationView view_of(const Collective& collective, std::uint64_t number) {
  return {.number = number,
          .kind = collective.kind,
          .dtype = collective.dtype,
          .op = collective.op,
          .peer = collective.peer,
          .tag = collective.tag,
          .count = collective.kind == CollectiveKind::all_to_all ? 0 : collective.total()};
}

void OperationRecord::set(const OperationView& operation) {
  number_.store(0, std::memory_order_relaxed);
  what_.store(static_cast<std::uint64_t>(operation.kind) | static_cast<std::uint64_t>(operation.dtype) << 8 |
                  static_cast<std::uint64_t>(operation.op) << 16,
              std::memory_order_release);
  whom_.store(static_cast<std::uint64_t>(static_cast<std::uint32_t>(operation.peer)) |
                  static_cast<std::uint64_t>(operation.tag) << 32,
              std::memory_order_release);
  count_.store(operation.count, std::memory_order_release);
  number_.store(operation.number, std::memory_order_release);
}

OperationView OperationRecord::get() const {
  const std::uint64_t number = number_.load(std::memory_order_acquire);
  const std::uint64_t what = what_.load(std::memory_order_acquire), whom = whom_.load(std::memory_order_acquire);
  const OperationView view{.number = number,
                           .kind = static_cast<CollectiveKind>(what & 0xff),
                           .dtype = static_cast<DType>(what >> 8 & 0xff),
                           .op = static_cast<ReduceOp>(what >> 16 & 0xff),
                           .peer = static_cast<int>(whom & 0xffff'ffff),
                           .tag = static_cast<int>(whom >> 32),
                           .count = count_.load(std::memory_order_acquire)};
  // Whoever looks at a file may find anything in it.
  const bool is_one = static_cast<int>(view.kind) < kCollectiveKinds && static_cast<int>(view.dtype) < kDTypeCount &&
                      view.op <= ReduceOp::max;
  return is_one && number_.load(std::memory_order_relaxed) == number ? view : OperationView{};
}

}  // namespace tandem::comm

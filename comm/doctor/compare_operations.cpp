// A row of numbers of each rank, and the text of a diagnosis.
#include "tandem/comm/doctor/compare_operations.h"

#include "tandem/comm/agreement.h"
#include "tandem/comm/doctor/diagnosis.h"

#include <fmt/format.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace tandem::comm {

namespace {

constexpr std::int64_t kRow = 5;

std::vector<std::int64_t> row_of(const OperationView& operation) {
  return {static_cast<std::int64_t>(operation.kind), static_cast<std::int64_t>(operation.dtype),
          static_cast<std::int64_t>(operation.op), operation.peer, operation.count};
}

OperationView operation_of(const std::int64_t* row, std::uint64_t number) {
  return {.number = number,
          .kind = static_cast<CollectiveKind>(row[0]),
          .dtype = static_cast<DType>(row[1]),
          .op = static_cast<ReduceOp>(row[2]),
          .peer = static_cast<int>(row[3]),
          .count = row[4]};
}

}  // namespace

void compare_operations(Backend& backend, const OperationView& mine, CheckedMessages& messages) {
  const int ranks = backend.place().size;
  // Tensors: when an error has ended this call, its part may go on and write.
  const Tensor row = Tensor::from(row_of(mine), {kRow}), all = Tensor::empty({ranks, kRow}, {.dtype = DType::i64});
  const std::unique_ptr<Work> exchange =
      backend.start({.kind = CollectiveKind::all_gather,
                     .dtype = DType::i64,
                     .counts = std::vector<std::int64_t>(static_cast<std::size_t>(ranks), kRow),
                     .input = row.raw_data(),
                     .output = Out(all).raw_data(),
                     .input_owner = row,
                     .output_owner = all});
  messages.wait_for(*exchange);
  const auto rows = all.to_vector<std::int64_t>();
  GroupView group;
  for (int rank = 0; rank < ranks; ++rank) {
    RankView& view = group.ranks.emplace_back();
    view.rank = rank;
    view.is_known = true;
    view.collectives = {operation_of(rows.data() + rank * kRow, mine.number)};
  }
  if (const auto difference = find_fault(group))
    throw AgreedError(fmt::format("{}; {}", difference->cause, difference->remedy));
}

}  // namespace tandem::comm

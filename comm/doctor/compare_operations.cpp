// A row of numbers of each rank, and the text of a diagnosis.
#include "tandem/comm/doctor/compare_operations.h"

#include "tandem/comm/agreement.h"
#include "tandem/comm/doctor/diagnosis.h"

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <vector>

namespace tandem::comm {

namespace {

using Row = std::array<std::int64_t, 5>;

Row row_of(const OperationView& operation) {
  return {static_cast<std::int64_t>(operation.kind), static_cast<std::int64_t>(operation.dtype),
          static_cast<std::int64_t>(operation.op), operation.peer, operation.count};
}

OperationView operation_of(const Row& row, std::uint64_t number) {
  return {.number = number,
          .kind = static_cast<CollectiveKind>(row[0]),
          .dtype = static_cast<DType>(row[1]),
          .op = static_cast<ReduceOp>(row[2]),
          .peer = static_cast<int>(row[3]),
          .count = row[4]};
}

}  // namespace

void compare_operations(Backend& backend, const OperationView& mine) {
  const auto ranks = static_cast<std::size_t>(backend.place().size);
  const Row row = row_of(mine);
  std::vector<Row> rows(ranks);
  backend.run({.kind = CollectiveKind::all_gather,
               .dtype = DType::i64,
               .counts = std::vector<std::int64_t>(ranks, row.size()),
               .input = row.data(),
               .output = rows.data()});
  GroupView group;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    RankView& view = group.ranks.emplace_back();
    view.rank = static_cast<int>(rank);
    view.is_known = true;
    view.collectives = {operation_of(rows[rank], mine.number)};
  }
  if (const auto difference = find_fault(group))
    throw AgreedError(fmt::format("{}; {}", difference->cause, difference->remedy));
}

}  // namespace tandem::comm

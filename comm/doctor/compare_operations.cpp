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

/// All ranks' rows, by rank.
std::vector<std::int64_t> exchange_rows(Backend& backend, const std::vector<std::int64_t>& mine,
                                        CheckedMessages& messages) {
  const int ranks = backend.place().size;
  const auto length = static_cast<std::int64_t>(mine.size());
  // Tensors: when an error has ended this call, its part may go on and write.
  const Tensor row = Tensor::from(mine, {length}), all = Tensor::empty({ranks, length}, {.dtype = DType::i64});
  const std::unique_ptr<Work> exchange =
      backend.start({.kind = CollectiveKind::all_gather,
                     .dtype = DType::i64,
                     .counts = std::vector<std::int64_t>(static_cast<std::size_t>(ranks), length),
                     .input = row.raw_data(),
                     .output = Out(all).raw_data(),
                     .input_owner = row,
                     .output_owner = all});
  messages.wait_for(*exchange);
  return all.to_vector<std::int64_t>();
}

/// What each rank has for each other one, of which these two alone know, and what that one expects.
void compare_parts(Backend& backend, const Collective& collective, const OperationView& mine,
                   CheckedMessages& messages) {
  std::vector<std::int64_t> row = collective.counts;
  row.insert(row.end(), collective.receive_counts.begin(), collective.receive_counts.end());
  const std::vector<std::int64_t> rows = exchange_rows(backend, row, messages);
  const auto ranks = static_cast<std::size_t>(backend.place().size);
  for (std::size_t from = 0; from < ranks; ++from) {
    for (std::size_t to = 0; to < ranks; ++to) {
      const std::int64_t sent = rows[2 * ranks * from + to], expected = rows[2 * ranks * to + ranks + from];
      if (sent == expected) continue;
      const std::string_view dtype = name_of(mine.dtype);
      throw AgreedError(fmt::format(
          "rank {} has {}[{}] for rank {} in all_to_all #{}, and rank {} expects {}[{}]; what a rank has for "
          "another one is to be what that one expects of it",
          from, dtype, sent, to, mine.number, to, dtype, expected));
    }
  }
}

}  // namespace

void compare_operations(Backend& backend, const Collective& collective, const OperationView& mine,
                        CheckedMessages& messages) {
  const std::vector<std::int64_t> rows = exchange_rows(backend, row_of(mine), messages);
  GroupView group;
  for (int rank = 0; rank < backend.place().size; ++rank) {
    RankView& view = group.ranks.emplace_back();
    view.rank = rank;
    view.is_known = true;
    view.collectives = {operation_of(rows.data() + rank * kRow, mine.number)};
  }
  if (const auto difference = find_fault(group))
    throw AgreedError(fmt::format("{}; {}", difference->cause, difference->remedy));
  if (mine.kind == CollectiveKind::all_to_all) compare_parts(backend, collective, mine, messages);
}

}  // namespace tandem::comm

// Names and texts.
#include "tandem/comm/collective.h"

#include <fmt/format.h>

#include <numeric>

namespace tandem::comm {

std::string_view name_of(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum:
      return "sum";
    case ReduceOp::product:
      return "product";
    case ReduceOp::average:
      return "average";
    case ReduceOp::min:
      return "min";
    case ReduceOp::max:
      return "max";
  }
  return "";
}

std::string_view name_of(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::send:
      return "send";
    case CollectiveKind::receive:
      return "receive";
    case CollectiveKind::broadcast:
      return "broadcast";
    case CollectiveKind::all_reduce:
      return "all_reduce";
    case CollectiveKind::reduce:
      return "reduce";
    case CollectiveKind::all_gather:
      return "all_gather";
    case CollectiveKind::gather:
      return "gather";
    case CollectiveKind::scatter:
      return "scatter";
    case CollectiveKind::reduce_scatter:
      return "reduce_scatter";
    case CollectiveKind::all_to_all:
      return "all_to_all";
    case CollectiveKind::barrier:
      return "barrier";
  }
  return "";
}

std::int64_t Collective::total() const { return std::accumulate(counts.begin(), counts.end(), std::int64_t{0}); }

Collective in_place(CollectiveKind kind, const Out& tensor, ReduceOp op) {
  void* const data = tensor.raw_data();
  return {.kind = kind,
          .dtype = tensor.tensor().dtype(),
          .op = op,
          .counts = {tensor.tensor().numel()},
          .input = data,
          .output = data,
          .input_owner = tensor,
          .output_owner = tensor};
}

std::string describe(const Collective& collective) {
  std::string text(name_of(collective.kind));
  if (collective.kind == CollectiveKind::barrier) return text;
  // Without a format string: a trace has this text of each operation.
  if (is_reduction(collective.kind)) text.append(" ").append(name_of(collective.op));
  text.append(" ").append(tandem::name_of(collective.dtype)).append("[");
  for (std::size_t i = 0; i < collective.counts.size(); ++i)
    text.append(i == 0 ? "" : ", ").append(fmt::format_int(collective.counts[i]).c_str());
  text.append("]");
  switch (collective.kind) {
    case CollectiveKind::send:
    case CollectiveKind::reduce:
    case CollectiveKind::gather:
      return text + fmt::format(" to rank {}", collective.peer);
    case CollectiveKind::receive:
    case CollectiveKind::broadcast:
    case CollectiveKind::scatter:
      return text + fmt::format(" from rank {}", collective.peer);
    default:
      return text;
  }
}

}  // namespace tandem::comm

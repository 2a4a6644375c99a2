// Who gets which block.
#include "tandem/comm/backends/blocks.h"

namespace tandem::comm {

BlockExchange exchange_of(const Collective& collective, int rank, int ranks) {
  const auto mine = static_cast<std::size_t>(rank), peer = static_cast<std::size_t>(collective.peer);
  BlockExchange result{std::vector<Block>(static_cast<std::size_t>(ranks)),
                       std::vector<Block>(static_cast<std::size_t>(ranks))};
  auto& [sent, received] = result;
  const bool is_root = collective.peer == rank;
  const auto my_count = collective.counts[collective.counts.size() > 1 ? mine : 0];
  const Block my_input{static_cast<std::byte*>(const_cast<void*>(collective.input)), collective.bytes(my_count)};
  const Block my_output{static_cast<std::byte*>(collective.output), collective.bytes(my_count)};
  switch (collective.kind) {
    case CollectiveKind::send:
      sent[peer] = my_input;
      break;
    case CollectiveKind::receive:
      received[peer] = my_output;
      break;
    case CollectiveKind::broadcast:
      if (is_root) sent.assign(sent.size(), my_input);
      received[peer] = my_output;
      break;
    case CollectiveKind::all_gather:
      sent.assign(sent.size(), my_input);
      received = blocks_of(collective.output, collective.counts, collective.dtype);
      break;
    case CollectiveKind::gather:
      sent[peer] = my_input;
      if (is_root) received = blocks_of(collective.output, collective.counts, collective.dtype);
      break;
    case CollectiveKind::scatter:
      if (is_root) sent = blocks_of(collective.input, collective.counts, collective.dtype);
      received[peer] = my_output;
      break;
    case CollectiveKind::all_to_all:
      sent = blocks_of(collective.input, collective.counts, collective.dtype);
      received = blocks_of(collective.output, collective.receive_counts, collective.dtype);
      break;
    default:
      break;
  }
  return result;
}

}  // namespace tandem::comm

// Which schedule, and which memory is which chunk.
#include "tandem/comm/backends/native/collective_plan.h"

#include "tandem/comm/backends/blocks.h"
#include "tandem/comm/schedules/algorithms.h"
#include "tandem/comm/schedules/schedule_builder.h"
#include "tandem/core/error.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace tandem::comm {

namespace {

Schedule make_schedule(CollectiveKind kind, int ranks, int root) {
  switch (kind) {
    case CollectiveKind::broadcast:
      return binomial_broadcast(ranks, root);
    case CollectiveKind::reduce:
      return binomial_reduce(ranks, root);
    case CollectiveKind::all_gather:
      return ring_all_gather(ranks);
    case CollectiveKind::gather:
      return direct_gather(ranks, root);
    case CollectiveKind::scatter:
      return direct_scatter(ranks, root);
    case CollectiveKind::reduce_scatter:
      return direct_reduce_scatter(ranks);
    case CollectiveKind::all_to_all:
      return direct_all_to_all(ranks);
    case CollectiveKind::barrier:  // whoever has the combination of all ranks' tokens knows that all are there
      return recursive_doubling(ranks);
    default:
      fail("native: {} has no schedule", name_of(kind));
  }
}

bool has_root(CollectiveKind kind) {
  return kind == CollectiveKind::broadcast || kind == CollectiveKind::reduce || kind == CollectiveKind::gather ||
         kind == CollectiveKind::scatter;
}

/// `count` elements from `memory` on, cut as the schedule does.
std::vector<ChunkMemory> cut(void* memory, std::int64_t count, DType dtype, int chunks) {
  std::vector<ChunkMemory> result;
  for (int chunk = 0; chunk < chunks; ++chunk) {
    const ElementRange range = chunk_range(count, chunks, chunk);
    result.push_back({static_cast<std::byte*>(memory) + range.begin * size_of(dtype), range.count});
  }
  return result;
}

}  // namespace

Schedules::Schedules(int ranks, int rank, std::vector<SizedSchedule> all_reduce)
    : ranks_(ranks), rank_(rank), all_reduce_(std::move(all_reduce)) {}

std::shared_ptr<const Schedule> Schedules::all_reduce_of(std::int64_t bytes) const {
  const auto behind = std::ranges::upper_bound(all_reduce_, bytes, {}, &SizedSchedule::from_bytes);
  return std::prev(behind)->schedule;
}

std::shared_ptr<const Schedule> Schedules::schedule_of(CollectiveKind kind, int root) {
  const std::pair key{kind, has_root(kind) ? root : 0};
  const auto found = std::ranges::find(made_, key, &decltype(made_)::value_type::first);
  if (found != made_.end()) return found->second;
  made_.emplace_back(key, std::make_shared<const Schedule>(make_schedule(kind, ranks_, key.second)));
  return made_.back().second;
}

std::shared_ptr<const Schedule> Schedules::schedule_of_message(const Collective& collective) const {
  ScheduleBuilder schedule("message", ranks_, 1);
  const bool sends = collective.kind == CollectiveKind::send;
  schedule.copy(0, sends ? rank_ : collective.peer, sends ? collective.peer : rank_, 0);
  return std::make_shared<const Schedule>(schedule.take());
}

CollectivePlan Schedules::plan(const Collective& collective) {
  CollectivePlan plan{.elements = {collective.dtype, collective.op}};
  switch (collective.kind) {
    case CollectiveKind::send:
    case CollectiveKind::receive: {
      plan.schedule = schedule_of_message(collective);
      void* const memory =
          collective.kind == CollectiveKind::send ? const_cast<void*>(collective.input) : collective.output;
      plan.chunks = {{static_cast<std::byte*>(memory), collective.count()}};
      return plan;
    }
    case CollectiveKind::barrier:
      plan.schedule = schedule_of(collective.kind, 0);
      plan.elements = {DType::i32, ReduceOp::max};
      plan.chunks = {{reinterpret_cast<std::byte*>(&token_), 1}};
      return plan;
    default:
      break;
  }
  plan.schedule = collective.kind == CollectiveKind::all_reduce ? all_reduce_of(collective.bytes(collective.count()))
                                                                : schedule_of(collective.kind, collective.peer);
  switch (collective.kind) {
    case CollectiveKind::broadcast:
    case CollectiveKind::all_reduce:
    case CollectiveKind::reduce:
      plan.chunks = reduction_chunks(collective, *plan.schedule, plan.scratch);
      return plan;
    case CollectiveKind::reduce_scatter:
      plan.chunks = reduce_scatter_chunks(collective);
      return plan;
    case CollectiveKind::all_to_all:
      plan.chunks = all_to_all_chunks(collective);
      return plan;
    default:
      plan.chunks = block_chunks(collective);
      return plan;
  }
}

/// Broadcasts, too: what works on one array.
std::vector<ChunkMemory> Schedules::reduction_chunks(const Collective& collective, const Schedule& schedule,
                                                     std::unique_ptr<Storage>& scratch) const {
  const std::int64_t bytes = collective.bytes(collective.count());
  void* memory = collective.output;
  if (memory == nullptr && bytes > 0) {  // a rank that is not the root combines, too
    scratch = std::make_unique<Storage>(bytes, Device{}, MemoryTag::comm);
    memory = scratch->data();
  }
  const bool has_input = collective.kind != CollectiveKind::broadcast || collective.peer == rank_;
  if (has_input) copy_block(collective.input, memory, bytes);
  return cut(memory, collective.count(), collective.dtype, schedule.chunks);
}

/// Each rank's block: of all_gather, gather and scatter.
std::vector<ChunkMemory> Schedules::block_chunks(const Collective& collective) const {
  const bool scatters = collective.kind == CollectiveKind::scatter;
  const bool has_all = collective.kind == CollectiveKind::all_gather || collective.peer == rank_;
  const auto mine = static_cast<std::size_t>(rank_);
  std::vector<ChunkMemory> chunks;
  for (const std::int64_t count : collective.counts) chunks.push_back({nullptr, count});
  if (has_all) {
    const auto blocks = blocks_of(scatters ? collective.input : collective.output, collective.counts, collective.dtype);
    for (std::size_t rank = 0; rank < chunks.size(); ++rank) chunks[rank].data = blocks[rank].data;
    if (scatters) {
      copy_block(blocks[mine].data, collective.output, blocks[mine].bytes);
    } else {
      copy_block(collective.input, blocks[mine].data, blocks[mine].bytes);
    }
  } else {
    void* const memory = scatters ? collective.output : const_cast<void*>(collective.input);
    chunks[mine].data = static_cast<std::byte*>(memory);
  }
  return chunks;
}

std::vector<ChunkMemory> Schedules::reduce_scatter_chunks(const Collective& collective) const {
  std::vector<ChunkMemory> chunks;
  const auto blocks = blocks_of(collective.input, collective.counts, collective.dtype);
  for (std::size_t rank = 0; rank < blocks.size(); ++rank)
    chunks.push_back({blocks[rank].data, collective.counts[rank]});
  const auto mine = static_cast<std::size_t>(rank_);
  copy_block(chunks[mine].data, collective.output, blocks[mine].bytes);
  chunks[mine].data = static_cast<std::byte*>(collective.output);
  return chunks;
}

std::vector<ChunkMemory> Schedules::all_to_all_chunks(const Collective& collective) const {
  const auto ranks = static_cast<std::size_t>(ranks_), mine = static_cast<std::size_t>(rank_);
  std::vector<ChunkMemory> chunks(ranks * ranks);
  const auto sent = blocks_of(collective.input, collective.counts, collective.dtype);
  const auto received = blocks_of(collective.output, collective.receive_counts, collective.dtype);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    chunks[mine * ranks + rank] = {sent[rank].data, collective.counts[rank]};
    chunks[rank * ranks + mine] = {received[rank].data, collective.receive_counts[rank]};
  }
  copy_block(sent[mine].data, received[mine].data, received[mine].bytes);
  return chunks;
}

}  // namespace tandem::comm

// Memory of all ranks, and the loop over it.
#include "apps/allreduce_bench/roofline.h"

#include "tandem/comm/agreement.h"
#include "tandem/comm/backends/native/rank_reduction.h"
#include "tandem/comm/schedules/schedule.h"
#include "tandem/comm/transports/shared_memory/shared_memory.h"
#include "tandem/comm/transports/shared_memory/window.h"
#include "tandem/core/error.h"

#include <algorithm>
#include <utility>

namespace tandem::allreduce_bench {

namespace {

constexpr std::int64_t kPage = 4096;

/// Made on rank 0, and mapped on the others.
std::shared_ptr<comm::SharedMemory> shared_by_ranks(comm::ProcessGroup& group, std::int64_t part_bytes) {
  const comm::ByteRange own{group.rank() * part_bytes, part_bytes};
  auto memory = comm::run_agreed(group, [&]() -> std::shared_ptr<comm::SharedMemory> {
    return group.rank() == 0 ? comm::SharedMemory::create(group.size() * part_bytes, own) : nullptr;
  });
  const std::string handle = group.all_gather_bytes(memory ? memory->handle() : "").front();
  comm::run_agreed(group, [&] {
    if (!memory) memory = comm::SharedMemory::open(handle, own);
  });
  if (group.rank() == 0) memory->seal();
  return memory;
}

}  // namespace

void check_one_host(int ranks, int local_ranks) {
  require(ranks == local_ranks,
          "--roofline: it is of ranks on one host, which read each other's memory; of {} ranks, {} are on this one",
          ranks, local_ranks);
}

Roofline::Roofline(comm::ProcessGroup& group, std::int64_t count, DType dtype)
    : dtype_(dtype), ranks_(group.size()), tensor_bytes_((count * size_of(dtype) + kPage - 1) / kPage * kPage) {
  memory_ = shared_by_ranks(group, 2 * tensor_bytes_);
  // Parts end where cache lines do: no line is written by two ranks.
  const std::int64_t line = static_cast<std::int64_t>(comm::kSharedLineBytes) / size_of(dtype);
  const comm::ElementRange lines = comm::chunk_range((count + line - 1) / line, ranks_, group.rank());
  begin_ = lines.begin * line;
  count_ = std::min(count, begin_ + lines.count * line) - begin_;
  const auto tensor = [&](bool is_output) {
    auto storage =
        std::make_shared<Storage>(tensor_of(group.rank(), is_output), tensor_bytes_, MemoryTag::comm, memory_);
    return Tensor::on(std::move(storage), {count}, dtype);
  };
  buffers_ = {tensor(false), tensor(true)};
}

std::byte* Roofline::tensor_of(int rank, bool is_output) const {
  return memory_->data() + (2 * rank + (is_output ? 1 : 0)) * tensor_bytes_;
}

void Roofline::run(bool in_place, comm::ReduceOp op) const {
  if (count_ <= 0) return;
  std::vector<const std::byte*> inputs;
  std::vector<std::byte*> outputs;
  for (int rank = 0; rank < ranks_; ++rank) {
    inputs.push_back(tensor_of(rank, false) + begin_ * size_of(dtype_));
    outputs.push_back(tensor_of(rank, !in_place) + begin_ * size_of(dtype_));
  }
  comm::reduce_ranks(inputs, outputs, count_, dtype_, op);
}

}  // namespace tandem::allreduce_bench

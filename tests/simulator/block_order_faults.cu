// Planted faults: blocks of a launch that hand memory to each other by atomics, and lack a fence or a barrier for it.
#include "tandem/core/cuda/launch.h"
#include "tandem/kernels/device/shared.h"
#include "tests/simulator/device_buffer.h"
#include "tests/simulator/planted_fault.h"

namespace tandem::test {
namespace {

using simulator::FaultKind;
constexpr int kThreads = 64, kBlocks = 3;

__global__ void ticket_without_fence(int* parts, unsigned* count, int* sum) {
  if (threadIdx.x != 0) return;
  parts[blockIdx.x] = 1;
  if (atomicAdd(count, 1u) + 1 < gridDim.x) return;
  __threadfence();
  for (int i = 0; i < kBlocks; ++i) *sum += parts[i];  // fault: fence missing before the ticket
}

__global__ void fence_of_block(int* parts, unsigned* count, int* sum) {
  if (threadIdx.x != 0) return;
  parts[blockIdx.x] = 1;
  __threadfence_block();
  if (atomicAdd(count, 1u) + 1 < gridDim.x) return;
  __threadfence();
  for (int i = 0; i < kBlocks; ++i) *sum += parts[i];  // fault: a fence of the block alone before the ticket
}

__global__ void no_fence_behind_ticket(int* parts, unsigned* count, int* sum) {
  if (threadIdx.x != 0) return;
  parts[blockIdx.x] = 1;
  __threadfence();
  if (atomicAdd(count, 1u) + 1 < gridDim.x) return;
  for (int i = 0; i < kBlocks; ++i) *sum += parts[i];  // fault: fence missing behind the ticket
}

__global__ void fence_of_block_behind_ticket(int* parts, unsigned* count, int* sum) {
  if (threadIdx.x != 0) return;
  parts[blockIdx.x] = 1;
  __threadfence();
  if (atomicAdd(count, 1u) + 1 < gridDim.x) return;
  __threadfence_block();
  for (int i = 0; i < kBlocks; ++i) *sum += parts[i];  // fault: a fence of the block alone behind the ticket
}

/// The thread that takes the ticket has not waited for what the others write.
__global__ void ticket_without_barrier(int* parts, unsigned* count, int* sums) {
  TANDEM_SHARED(unsigned, ticket);
  const int t = static_cast<int>(threadIdx.x);
  parts[static_cast<int>(blockIdx.x) * kThreads + t] = 1;
  if (t == 0) {
    __threadfence();
    ticket = atomicAdd(count, 1u);
    __threadfence();
  }
  __syncthreads();
  if (ticket + 1 < gridDim.x) return;
  for (int i = 0; i < kBlocks; ++i) sums[t] += parts[i * kThreads + t];  // fault: barrier missing before the ticket
}

/// A fence behind the barrier is that of the thread which has it, until there is another barrier.
__global__ void fence_of_one_reader(int* parts, unsigned* count, int* sum) {
  TANDEM_SHARED(unsigned, ticket);
  if (threadIdx.x == 0) {
    parts[blockIdx.x] = 1;
    __threadfence();
    ticket = atomicAdd(count, 1u);
  }
  __syncthreads();
  if (ticket + 1 < gridDim.x) return;
  if (threadIdx.x == 1) __threadfence();
  if (threadIdx.x != 2) return;
  for (int i = 0; i < kBlocks; ++i) *sum += parts[i];  // fault: only another reader has a fence
}

/// The others are told by an atomic in shared memory that the ticket is the last one, and do not come after the fence.
__global__ void fence_of_another_thread(int* parts, unsigned* count, int* sum) {
  TANDEM_SHARED(unsigned, told);
  if (threadIdx.x == 0) told = 0;
  __syncthreads();
  if (threadIdx.x == 0) {
    parts[blockIdx.x] = 1;
    __threadfence();
    const unsigned ticket = atomicAdd(count, 1u);
    __threadfence();
    atomicExch(&told, ticket + 1);
  } else if (threadIdx.x == 32) {
    unsigned ticket = 0;
    while ((ticket = atomicAdd(&told, 0u)) == 0) {
    }
    if (ticket < gridDim.x) return;
    for (int i = 0; i < kBlocks; ++i) *sum += parts[i];  // fault: the fence was another thread's
  }
}

__global__ void overwrites_what_blocks_read(int* data, unsigned* count, int* out) {
  if (threadIdx.x != 0) return;
  out[blockIdx.x] = *data;
  if (atomicAdd(count, 1u) + 1 < gridDim.x) return;
  __threadfence();
  *data = 1;  // fault: fence missing between a read and the ticket
}

/// The flag of each block is its own, though all have it at one place.
__global__ void flag_in_shared_memory(int* parts, unsigned* count, int* sum) {
  TANDEM_SHARED(unsigned, told);
  if (threadIdx.x != 0) return;
  const unsigned turn = atomicAdd(count, 1u);
  told = 0;
  parts[turn] = 1;
  __threadfence();
  atomicExch(&told, 1u);
  __threadfence();
  if (turn + 1 < gridDim.x) return;
  for (int i = 0; i < kBlocks; ++i) *sum += parts[i];  // fault: the flag is not another block's
}

/// The turn of the block; all but the last of them are to read, and the last one then writes.
__device__ unsigned turn_of_block(unsigned* count) {
  TANDEM_SHARED(unsigned, turn);
  if (threadIdx.x == 0) turn = atomicAdd(count, 1u);
  __syncthreads();
  return turn;
}

/// The lane that takes the ticket hands on what it has read itself.
__global__ void other_lanes_read_too(int* data, unsigned* count, int* out) {
  const unsigned turn = turn_of_block(count);
  if (turn + 1 < gridDim.x && threadIdx.x < 8) out[turn * 8 + threadIdx.x] = *data;
  if (threadIdx.x != 0) return;
  __threadfence();
  if (atomicAdd(count + 1, 1u) + 1 < gridDim.x) return;
  __threadfence();
  *data = 1;  // fault: other lanes have read it, too
}

/// The same, and there is one other thread, of another warp.
__global__ void another_warp_reads_too(int* data, unsigned* count, int* out) {
  const unsigned turn = turn_of_block(count);
  if (turn + 1 < gridDim.x && threadIdx.x % 32 == 0) out[turn * 2 + threadIdx.x / 32] = *data;
  if (threadIdx.x != 0) return;
  __threadfence();
  if (atomicAdd(count + 1, 1u) + 1 < gridDim.x) return;
  __threadfence();
  *data = 1;  // fault: another warp has read it, too
}

/// All read a word, the first by its ticket hands nothing on, and the last one knows of the others alone.
__global__ void one_block_hands_nothing_on(int* data, unsigned* count, int* out) {
  if (threadIdx.x != 0) return;
  const unsigned turn = atomicAdd(count, 1u);
  out[blockIdx.x] = *data;
  if (turn == 0) __threadfence();
  if (atomicAdd(count + 1, 1u) + 1 < gridDim.x) return;
  __threadfence();
  *data = 1;  // fault: one block of three has a fence
}

void run_with_ticket(void (*kernel)(int*, unsigned*, int*), std::size_t parts) {
  const DeviceBuffer<int> data(zeros<int>(parts)), out(zeros<int>(kThreads));
  const DeviceBuffer<unsigned> count(zeros<unsigned>(2));
  launch(kernel, {kBlocks, kThreads}, nullptr, data.data(), count.data(), out.data());
}

PlantedFault of_ticket(const char* name, void (*kernel)(int*, unsigned*, int*), std::size_t parts = kBlocks) {
  return {name, FaultKind::race, [=] { run_with_ticket(kernel, parts); }, true, __FILE__};
}

const PlantFault kFaults[] = {
    PlantFault(of_ticket("fence missing before the ticket", ticket_without_fence)),
    PlantFault(of_ticket("a fence of the block alone before the ticket", fence_of_block)),
    PlantFault(of_ticket("fence missing behind the ticket", no_fence_behind_ticket)),
    PlantFault(of_ticket("a fence of the block alone behind the ticket", fence_of_block_behind_ticket)),
    PlantFault(of_ticket("barrier missing before the ticket", ticket_without_barrier, kBlocks* kThreads)),
    PlantFault(of_ticket("only another reader has a fence", fence_of_one_reader)),
    PlantFault(of_ticket("the fence was another thread's", fence_of_another_thread)),
    PlantFault(of_ticket("fence missing between a read and the ticket", overwrites_what_blocks_read)),
    PlantFault(of_ticket("the flag is not another block's", flag_in_shared_memory)),
    PlantFault(of_ticket("other lanes have read it, too", other_lanes_read_too)),
    PlantFault(of_ticket("another warp has read it, too", another_warp_reads_too)),
    PlantFault(of_ticket("one block of three has a fence", one_block_hands_nothing_on)),
};

}  // namespace
}  // namespace tandem::test

// Kernels whose blocks hand memory to each other: by tickets, and by waiting for blocks that have begun before.
#include "tandem/kernels/device/shared.h"
#include "tests/simulator/correct_kernels_support.h"

namespace tandem::test {
namespace {

constexpr int kThreads = 64, kBlocks = 5;

/// As in the CUDA programming guide: the last block to come adds up what all have left.
__global__ void last_block_adds(int* parts, unsigned* count, int* out) {
  TANDEM_SHARED(bool, is_last);
  if (threadIdx.x == 0) {
    parts[blockIdx.x] = static_cast<int>(blockIdx.x) + 1;
    __threadfence();
    is_last = atomicInc(count, gridDim.x - 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (!is_last || threadIdx.x != 0) return;
  __threadfence();
  for (int i = 0; i < kBlocks; ++i) *out += parts[i];
}

/// All threads write, one takes the ticket, all read. The ticket is 0 again for another launch.
__global__ void last_block_adds_columns(int* parts, unsigned* count, int* out) {
  TANDEM_SHARED(unsigned, ticket);
  const int t = static_cast<int>(threadIdx.x);
  parts[static_cast<int>(blockIdx.x) * kThreads + t] = t;
  __syncthreads();
  if (t == 0) {
    __threadfence();
    ticket = atomicAdd(count, 1u);
    __threadfence();
  }
  __syncthreads();
  if (ticket + 1 < gridDim.x) return;
  for (int i = 0; i < kBlocks; ++i) out[t] += parts[i * kThreads + t];
  if (t == 0) atomicExch(count, 0u);
}

/// The fences of all threads lie before the barrier, and that of the reading ones behind it.
__global__ void each_thread_fences(int* parts, unsigned* count, int* out) {
  TANDEM_SHARED(unsigned, ticket);
  const int t = static_cast<int>(threadIdx.x);
  parts[static_cast<int>(blockIdx.x) * kThreads + t] = t;
  __threadfence();
  __syncthreads();
  if (t == 0) ticket = atomicAdd(count, 1u);
  __syncthreads();
  if (ticket + 1 < gridDim.x) return;
  if (t < 32) {
    if (t == 0) __threadfence();
    __syncwarp();
    for (int i = 0; i < kBlocks; ++i) out[t] += parts[i * kThreads + t];
  }
}

/// The thread that takes the ticket has no fence behind it: those that read have, behind the barrier.
__global__ void readers_fence(int* parts, unsigned* count, int* out) {
  TANDEM_SHARED(unsigned, ticket);
  const int t = static_cast<int>(threadIdx.x);
  parts[static_cast<int>(blockIdx.x) * kThreads + t] = t;
  __threadfence();
  __syncthreads();
  if (t == 0) ticket = atomicAdd(count, 1u);
  __syncthreads();
  if (ticket + 1 < gridDim.x) return;
  __syncthreads();
  __threadfence();
  for (int i = 0; i < kBlocks; ++i) out[t] += parts[i * kThreads + t];
}

/// The same of the lanes of a warp.
__global__ void lanes_fence(int* parts, unsigned* count, int* out) {
  TANDEM_SHARED(unsigned, ticket);
  const int t = static_cast<int>(threadIdx.x);
  if (t >= 32) return;
  parts[static_cast<int>(blockIdx.x) * kThreads + t] = t;
  __threadfence();
  __syncwarp();
  if (t == 0) ticket = atomicAdd(count, 1u);
  __syncwarp();
  if (ticket + 1 < gridDim.x) return;
  __threadfence();
  for (int i = 0; i < kBlocks; ++i) out[t] += parts[i * kThreads + t];
}

/// Blocks take turns by the order in which they begin: the first two leave numbers, the others wait for these.
__global__ void two_phases(int* parts, unsigned* count, int* out) {
  TANDEM_SHARED(unsigned, turn);
  const int t = static_cast<int>(threadIdx.x);
  if (t == 0) turn = atomicAdd(count, 1u);
  __syncthreads();
  if (turn < 2) {
    parts[static_cast<int>(turn) * kThreads + t] = t + 1;
    __syncthreads();
    if (t != 0) return;
    __threadfence();
    atomicAdd(count + 1, 1u);
    return;
  }
  if (t == 0) {
    while (atomicAdd(count + 1, 0u) < 2) __nanosleep(20);
    __threadfence();
  }
  __syncthreads();
  if (turn == 2) out[t] = parts[kThreads - 1 - t] + parts[kThreads + t];
}

/// The third block comes after the second, and so after the first.
__global__ void in_a_row(int* parts, unsigned* count, int* out) {
  if (threadIdx.x != 0) return;
  const unsigned turn = atomicAdd(count, 1u);
  if (turn == 0) {
    parts[0] = 7;
    __threadfence();
    atomicExch(count + 1, 1u);
  } else if (turn == 1) {
    while (atomicAdd(count + 1, 0u) == 0) __nanosleep(20);
    __threadfence();
    atomicExch(count + 2, 1u);
  } else if (turn == 2) {
    while (atomicAdd(count + 2, 0u) == 0) __nanosleep(20);
    __threadfence();
    *out = parts[0];
    parts[0] = 8;
  }
}

/// `launches` of them, one after the other.
std::vector<double> run_with_tickets(void (*kernel)(int*, unsigned*, int*), int launches = 1) {
  const DeviceBuffer<int> parts(kBlocks * kThreads), out(zeros<int>(kThreads));
  const DeviceBuffer<unsigned> count(zeros<unsigned>(3));
  for (int i = 0; i < launches; ++i)
    launch(kernel, {kBlocks, kThreads}, nullptr, parts.data(), count.data(), out.data());
  return doubles(out);
}

std::vector<double> each_thread(int threads, double factor, double addend = 0.0) {
  std::vector<double> values(kThreads);
  for (int t = 0; t < threads; ++t) values[static_cast<std::size_t>(t)] = factor * t + addend;
  return values;
}

}  // namespace

std::vector<CorrectKernel> correct_ticket_kernels() {
  return {
      {"the last block adds up", [] { return run_with_tickets(last_block_adds, 2); },
       [] { return each_thread(1, 0.0, 2 * 15.0); }},
      {"the last block adds up what all threads have left", [] { return run_with_tickets(last_block_adds_columns, 2); },
       [] { return each_thread(kThreads, 2.0 * kBlocks); }},
      {"each thread has a fence before the barrier, and one of a warp behind it",
       [] { return run_with_tickets(each_thread_fences); }, [] { return each_thread(32, kBlocks); }},
      {"each thread that reads has a fence behind the barrier", [] { return run_with_tickets(readers_fence); },
       [] { return each_thread(kThreads, kBlocks); }},
      {"each lane that reads has a fence behind __syncwarp", [] { return run_with_tickets(lanes_fence); },
       [] { return each_thread(32, kBlocks); }},
      {"blocks wait for those that have begun before them", [] { return run_with_tickets(two_phases); },
       [] { return each_thread(kThreads, 0.0, kThreads + 1); }},
      {"three blocks in a row", [] { return run_with_tickets(in_a_row); }, [] { return each_thread(1, 0.0, 7.0); }},
  };
}

}  // namespace tandem::test

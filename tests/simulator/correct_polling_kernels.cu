// Kernels whose threads wait for each other by atomics.
#include "tandem/core/cuda/shared.h"
#include "tests/simulator/correct_kernels_support.h"

namespace tandem::test {
namespace {

/// The last warp waits for what the first one does, by a flag; all add up under a lock.
__global__ void flag_and_lock(int* out) {
  TANDEM_SHARED(int, flag);
  TANDEM_SHARED(int, lock);
  TANDEM_SHARED(int, data);
  TANDEM_SHARED(int, sum);
  if (threadIdx.x == 0) flag = lock = sum = 0;
  __syncthreads();
  const unsigned warp = threadIdx.x / 32;
  if (warp == 0 && threadIdx.x == 0) {
    data = 42;
    __threadfence_block();
    atomicExch(&flag, 1);
  } else if (warp == 2) {
    while (atomicAdd(&flag, 0) == 0) {
    }
    __threadfence_block();
    out[threadIdx.x - 64] = data;
  }
  if (threadIdx.x % 32 == 0) {
    while (atomicCAS(&lock, 0, 1) != 0) {
    }
    __threadfence_block();
    sum += static_cast<int>(warp) + 1;
    __threadfence_block();
    atomicExch(&lock, 0);
  }
  __syncthreads();
  if (warp == 2) out[threadIdx.x - 64] += sum;
}

/// One lane waits for the flag, and all lanes that read have a fence behind it.
__global__ void lanes_fence_behind_flag(int* out) {
  TANDEM_SHARED(int, flag);
  TANDEM_SHARED(int, data, [32]);
  const unsigned t = threadIdx.x;
  if (t == 0) flag = 0;
  __syncthreads();
  if (t < 32) {
    data[t] = static_cast<int>(t) + 1;
    __syncwarp();
    if (t != 0) return;
    __threadfence_block();
    atomicExch(&flag, 1);
    return;
  }
  if (t == 32) {
    while (atomicAdd(&flag, 0) == 0) {
    }
  }
  __syncwarp();
  __threadfence_block();
  out[t - 32] = data[63 - t];
}

/// One thread works for long and changes no memory by it, another one waits until it is done.
__global__ void waits_for_slow_thread(const int* in, int* out, int rounds) {
  TANDEM_SHARED(int, done);
  TANDEM_SHARED(int, largest);
  if (threadIdx.x == 0) done = largest = 0;
  __syncthreads();
  if (threadIdx.x == 0) {
    int sum = 0;
    for (int i = 0; i < rounds; ++i) sum += atomicMax(&largest, in[i % 64]);
    out[1] = sum;
    __threadfence_block();
    atomicExch(&done, 1);
  } else if (threadIdx.x == 32) {
    while (atomicAdd(&done, 0) == 0) {
    }
    __threadfence_block();
    out[0] = largest;
  }
}

/// Nobody waits: atomics change nothing once the largest number is there.
__global__ void largest_of_many(const int* in, int* largest, int rounds) {
  for (int i = 0; i < rounds; ++i) atomicMax(largest, in[i % 64]);
}

constexpr int kManyRounds = 3'000'000;
std::vector<int> numbers_to_64() {
  std::vector<int> numbers(64);
  for (std::size_t i = 0; i < 64; ++i) numbers[i] = static_cast<int>(i);
  return numbers;
}

}  // namespace

std::vector<CorrectKernel> long_polling_kernels() {
  return {
      {"threads wait for one that works for long",
       [] {
         const DeviceBuffer<int> in(numbers_to_64()), out(2);
         launch(waits_for_slow_thread, {1, 64}, nullptr, in.data(), out.data(), kManyRounds);
         return doubles(out);
       },
       [] {
         return std::vector<double>{63.0,
                                    63.0 * (kManyRounds - 64) + 62 * 63 / 2.0};  // at first, the number before each
       }},
      {"atomics that change nothing",
       [] {
         const DeviceBuffer<int> in(numbers_to_64()), largest(zeros<int>(1));
         launch(largest_of_many, {1, 2}, nullptr, in.data(), largest.data(), kManyRounds);
         return doubles(largest);
       },
       [] { return std::vector<double>{63.0}; }},
  };
}

std::vector<CorrectKernel> correct_polling_kernels() {
  return {
      {"a flag and a lock within a block",
       [] { return run(flag_and_lock, 96, 32); },
       [] { return std::vector<double>(32, 42 + 1 + 2 + 3); },
       {kHandsOver}},
      {"one lane waits for a flag, and all have a fence behind it",
       [] { return run(lanes_fence_behind_flag, 64, 32); },
       [] {
         std::vector<double> values(32);
         for (int i = 0; i < 32; ++i) values[static_cast<std::size_t>(i)] = 32 - i;
         return values;
       },
       {kHandsOver}},
  };
}

}  // namespace tandem::test

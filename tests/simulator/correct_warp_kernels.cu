// Kernels whose lanes work together as a warp, also after some have left.
#include "tandem/core/cuda/shared.h"
#include "tandem/kernels/device/named_barrier.h"
#include "tandem/kernels/device/reduce.h"
#include "tests/simulator/correct_kernels_support.h"

namespace tandem::test {
namespace {

constexpr unsigned kAll = 0xffffffffu;

/// A tree in shared memory whose last steps are within one warp.
__global__ void warp_tree(const float* in, float* out) {
  TANDEM_SHARED(float, sums, [64]);
  const int t = static_cast<int>(threadIdx.x);
  sums[t] = in[t];
  __syncthreads();
  if (t < 32) {
    for (int distance = 32; distance > 0; distance /= 2) {
      const float other = t < distance ? sums[t + distance] : 0.0f;
      __syncwarp();
      if (t < distance) sums[t] += other;
      __syncwarp();
    }
  }
  if (t == 0) *out = sums[0];
}

/// Half warps that synchronise by themselves.
__global__ void half_warps(int* out) {
  TANDEM_SHARED(int, tile, [32]);
  const int t = static_cast<int>(threadIdx.x);
  const unsigned mask = t < 16 ? 0x0000ffffu : 0xffff0000u;
  tile[t] = t * t;
  __syncwarp(mask);
  out[t] = tile[t ^ 15] + __shfl_xor_sync(mask, t, 3);
}

/// Lane 0 meets lane 2, then lane 1, which may come first and waits for it meanwhile.
__global__ void meets_one_after_the_other(int* out) {
  TANDEM_SHARED(int, numbers, [3]);
  const int t = static_cast<int>(threadIdx.x);
  if (t >= 3) return;
  numbers[t] = t + 1;
  if (t != 1) __syncwarp(0x5u);
  if (t == 0) numbers[0] += 10 * numbers[2];
  if (t != 2) __syncwarp(0x3u);
  if (t == 1) *out = numbers[0] + numbers[1];
}

/// Warps that leave early where nobody waits for them.
__global__ void leaves_in_warps(const float* in, float* out) {
  if (threadIdx.x >= 32) return;
  out[threadIdx.x] = device::warp_sum(in[threadIdx.x]);
}

__global__ void votes(int* out) {
  const int t = static_cast<int>(threadIdx.x);
  const int odd = __syncthreads_count(t % 2), any = __syncthreads_or(t == 63), all = __syncthreads_and(t < 64);
  const unsigned even_lanes = __ballot_sync(kAll, t % 2 == 0);
  const unsigned same = __match_any_sync(kAll, t / 4);
  out[t] = odd + any + all + static_cast<int>(even_lanes == 0x55555555u) + __popc(same) +
           static_cast<int>(__reduce_add_sync(kAll, static_cast<unsigned>(t % 32))) + __reduce_max_sync(kAll, -t % 32);
}

__global__ void shuffles(int* out) {
  const int t = static_cast<int>(threadIdx.x);
  out[t] = __shfl_sync(kAll, t, 5, 8) + 100 * __shfl_up_sync(kAll, t, 3, 16) + 10000 * __shfl_down_sync(kAll, t, 2, 4);
}

/// More warp synchronisations than a counter of 16 bits holds.
__global__ void many_warp_synchronisations(int* out, int rounds) {
  TANDEM_SHARED(int, tile, [4]);
  const int t = static_cast<int>(threadIdx.x);
  tile[t] = t;
  __syncwarp(0xfu);
  for (int i = 0; i < rounds; ++i) {
    const int next = tile[(t + 1) % 4];
    __syncwarp(0xfu);
    tile[t] = next;
    __syncwarp(0xfu);
  }
  out[t] = tile[t];
}

/// Lanes that have left need not come to what their mask names.
__global__ void lanes_leave(int* out) {
  TANDEM_SHARED(int, tile, [96]);
  const int t = static_cast<int>(threadIdx.x);
  tile[t] = t;
  __syncwarp();
  if (t % 32 < 5) return;
  out[t] = tile[t - 5];
  __syncwarp();
  if (t % 32 == 5) tile[t] = 7;
  out[t] += __popc(__ballot_sync(kAll, 1)) + (__all_sync(kAll, t >= 5) != 0 ? 100 : 0);
  if (t % 2 == 0) return;
  out[t] += __shfl_sync(kAll, t % 32, t % 32);
}

/// match_all looks at the lanes of its mask that are there.
__global__ void match_without_lanes_that_left(int* out) {
  const int t = static_cast<int>(threadIdx.x);
  if (t >= 20) return;
  int same = 0, different = 0;
  const unsigned lanes = __match_all_sync(kAll, 7, &same);
  const unsigned none = __match_all_sync(kAll, t / 19, &different);
  out[t] = same + 2 * different + (lanes == 0xfffffu ? 4 : 0) + static_cast<int>(none);
}

/// A named barrier counts warps: lanes that have left come with the rest of theirs.
__global__ void lanes_leave_before_named_barrier(int* out) {
  TANDEM_SHARED(int, tile, [64]);
  const int t = static_cast<int>(threadIdx.x);
  if (t % 32 >= 20 || t >= 64) return;
  tile[t] = t;
  device::sync_named<64>(1);
  out[t] = tile[(t + 32) % 64];
}

}  // namespace

std::vector<CorrectKernel> correct_warp_kernels() {
  return {
      {"tree within a warp", [] { return run(warp_tree, 1, 64, 64, 1); },
       [] {
         double sum = 0.0;
         for (const float value : counting(64)) sum += static_cast<double>(value);
         return std::vector<double>{sum};
       }},
      {"half warps", [] { return run(half_warps, 32); },
       [] {
         std::vector<double> expected(32);
         for (int t = 0; t < 32; ++t) expected[static_cast<std::size_t>(t)] = (t ^ 15) * (t ^ 15) + (t ^ 3);
         return expected;
       }},
      {"lanes that meet one after the other", [] { return run(meets_one_after_the_other, 32, 1); },
       [] { return std::vector<double>{1 + 10 * 3 + 2}; }},
      {"warps that leave", [] { return run(leaves_in_warps, 1, 96, 32, 32); },
       [] {
         double sum = 0.0;
         for (const float value : counting(32)) sum += static_cast<double>(value);
         return std::vector<double>(32, sum);
       }},
      {"votes, matches and reductions", [] { return run(votes, 64); },
       [] {
         // 32 odd threads, any, all, the ballot, 4 lanes alike, 0+..+31, and the largest of -t % 32, which is 0.
         return std::vector<double>(64, 32 + 1 + 1 + 1 + 4 + 496 + 0);
       }},
      {"shuffles in segments", [] { return run(shuffles, 32); },
       [] {
         std::vector<double> expected(32);
         for (int t = 0; t < 32; ++t) {
           const int up = t % 16 >= 3 ? t - 3 : t, down = t % 4 + 2 <= 3 ? t + 2 : t;
           expected[static_cast<std::size_t>(t)] = t / 8 * 8 + 5 + 100 * up + 10000 * down;
         }
         return expected;
       }},
      {"70,000 warp synchronisations",
       [] {
         const DeviceBuffer<int> out(4);
         launch(many_warp_synchronisations, {1, 4}, nullptr, out.data(), 35'001);
         return doubles(out);
       },
       [] { return std::vector<double>{1, 2, 3, 0}; }},
      {"lanes leave before warp operations",
       [] {
         const DeviceBuffer<int> out(zeros<int>(96));
         launch(lanes_leave, {1, 96}, nullptr, out.data());
         return doubles(out);
       },
       [] {
         std::vector<double> expected(96);
         for (std::size_t t = 0; t < 96; ++t)
           if (t % 32 >= 5) expected[t] = static_cast<double>(t - 5 + 27 + 100 + (t % 2 == 1 ? t % 32 : 0));
         return expected;
       },
       {kLeavesEarly}},
      {"lanes leave before a match of all",
       [] {
         const DeviceBuffer<int> out(zeros<int>(32));
         launch(match_without_lanes_that_left, {1, 32}, nullptr, out.data());
         return doubles(out);
       },
       [] {
         std::vector<double> expected(32);
         for (std::size_t t = 0; t < 20; ++t) expected[t] = 1 + 4;
         return expected;
       },
       {kLeavesEarly}},
      {"lanes leave before a named barrier",
       [] {
         const DeviceBuffer<int> out(zeros<int>(64));
         launch(lanes_leave_before_named_barrier, {1, 96}, nullptr, out.data());
         return doubles(out);
       },
       [] {
         std::vector<double> expected(64);
         for (std::size_t t = 0; t < 64; ++t)
           if (t % 32 < 20) expected[t] = static_cast<double>((t + 32) % 64);
         return expected;
       },
       {kLeavesEarly}},
  };
}

}  // namespace tandem::test

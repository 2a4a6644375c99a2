// Correct kernels that look dangerous: none may raise an alarm, and all give one result in every order of threads.
#include "tandem/core/cuda/launch.h"
#include "tandem/kernels/device/atoms.h"
#include "tandem/kernels/device/named_barrier.h"
#include "tandem/kernels/device/reduce.h"
#include "tests/simulator/correct_kernels.h"
#include "tests/simulator/device_buffer.h"

namespace tandem::test {
namespace {

constexpr unsigned kAll = 0xffffffffu;

std::vector<float> counting(std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i % 17) - 8.0f;
  return values;
}

/// 16x16 tiles, two barriers per step.
__global__ void matmul(const float* a, const float* b, float* c, int n) {
  TANDEM_SHARED(float, a_tile, [16][16]);
  TANDEM_SHARED(float, b_tile, [16][17]);
  const int tx = static_cast<int>(threadIdx.x), ty = static_cast<int>(threadIdx.y);
  const int row = static_cast<int>(blockIdx.y) * 16 + ty, column = static_cast<int>(blockIdx.x) * 16 + tx;
  float sum = 0.0f;
  for (int k = 0; k < n; k += 16) {
    a_tile[ty][tx] = a[row * n + k + tx];
    b_tile[ty][tx] = b[(k + ty) * n + column];
    __syncthreads();
    for (int i = 0; i < 16; ++i) sum += a_tile[ty][i] * b_tile[i][tx];
    __syncthreads();
  }
  c[row * n + column] = sum;
}

/// Every thread writes its own byte of words that four threads share.
__global__ void neighbouring_bytes(unsigned char* out) {
  TANDEM_SHARED(unsigned char, bytes, [64]);
  const unsigned t = threadIdx.x;
  bytes[t] = static_cast<unsigned char>(t);
  out[t] = static_cast<unsigned char>(bytes[t] + 1);
}

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

/// All blocks count into one cell.
__global__ void count_positive(const float* in, int* count) {
  if (in[blockIdx.x * blockDim.x + threadIdx.x] > 0.0f) atomicAdd(count, 1);
}

/// Warps that leave early where nobody waits for them.
__global__ void leaves_in_warps(const float* in, float* out) {
  if (threadIdx.x >= 32) return;
  out[threadIdx.x] = device::warp_sum(in[threadIdx.x]);
}

/// Two stages of asynchronous copies, the next one under way while one is used.
__global__ void pipelined_copy(const float* in, float* out, int tiles) {
  TANDEM_SHARED(float, stage, [2][64]);
  const int t = static_cast<int>(threadIdx.x);
  device::cp_async<4>(&stage[0][t], &in[t]);
  device::cp_async_commit();
  for (int tile = 0; tile < tiles; ++tile) {
    if (tile + 1 < tiles) device::cp_async<4>(&stage[(tile + 1) % 2][t], &in[(tile + 1) * 64 + t]);
    device::cp_async_commit();
    device::cp_async_wait<1>();
    __syncthreads();
    out[tile * 64 + t] = stage[tile % 2][63 - t];
    __syncthreads();
  }
}

/// A copy whose source ends early fills with zeros.
__global__ void copy_with_zeros(const float* in, float* out) {
  TANDEM_SHARED(float4, tile, [32]);
  const int t = static_cast<int>(threadIdx.x);
  device::cp_async<16>(&tile[t], in + t * 4, t == 31 ? 8 : 16);
  device::cp_async_commit();
  device::cp_async_wait<0>();
  out[t] = tile[t].x + tile[t].y + tile[t].z + tile[t].w;
}

__global__ void block_sums(const float* in, float* out) {
  const float sum = device::block_sum<128>(in[blockIdx.x * 128 + threadIdx.x]);
  const float again = device::block_sum<128>(sum);
  if (threadIdx.x == 0) out[blockIdx.x] = again;
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

__global__ void dynamic_shared(const float* in, float* out, int count) {
  TANDEM_DYNAMIC_SHARED(float, buffer);
  for (int i = static_cast<int>(threadIdx.x); i < count; i += static_cast<int>(blockDim.x)) buffer[i] = in[i];
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < count; i += static_cast<int>(blockDim.x))
    out[i] = buffer[count - 1 - i];
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

/// Threads without work return before the barrier: those that are left wait for each other only.
__global__ void returns_before_barrier(const float* in, float* out, int count) {
  TANDEM_SHARED(float, tile, [96]);
  const int t = static_cast<int>(threadIdx.x);
  if (t >= count) return;
  tile[t] = in[t];
  __syncthreads();
  const float other = tile[count - 1 - t];
  const int here = __syncthreads_count(1);
  if (t % 2 == 1) return;
  tile[t] = other;
  __syncthreads();
  if (t + 2 < count) out[t] = tile[t + 2] + static_cast<float>(here);
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

struct Piece {
  float numbers[12];
};

/// Copies in bytes and structs, within shared memory and to and from local variables.
__global__ void copies_of_bytes(const float* in, float* out, int bytes) {
  TANDEM_SHARED(Piece, pieces, [32]);
  const unsigned t = threadIdx.x;
  Piece local;
  memset(&local, 0, sizeof local);
  memcpy(local.numbers, in + t * 3, static_cast<std::size_t>(bytes));
  pieces[t] = local;
  __syncwarp();
  memcpy(local.numbers, pieces[31 - t].numbers, 3 * sizeof(float));
  memcpy(out + t * 3, local.numbers, 3 * sizeof(float));
}

template <typename T>
std::vector<double> doubles(const DeviceBuffer<T>& buffer) {
  const std::vector<T> values = buffer.download();
  return {values.begin(), values.end()};
}

/// Runs a kernel float* -> float*.
std::vector<double> run(void (*kernel)(const float*, float*), unsigned blocks, unsigned threads, std::size_t in,
                        std::size_t out) {
  const DeviceBuffer<float> input(counting(in)), output(out);
  launch(kernel, {blocks, threads}, nullptr, input.data(), output.data());
  return doubles(output);
}

std::vector<double> run(void (*kernel)(int*), unsigned threads, std::size_t out) {
  const DeviceBuffer<int> output(out);
  launch(kernel, {1, threads}, nullptr, output.data());
  return doubles(output);
}

std::vector<double> run(void (*kernel)(int*), unsigned threads) { return run(kernel, threads, threads); }

// What compute-sanitizer makes of kernels, by its manual (docs.nvidia.com/compute-sanitizer) and the options of 2025.3,
// the version of CUDA 13.0. Racecheck orders accesses to shared memory by barriers, __syncwarp, mbarriers and
// asynchronous copies: atomics and fences are not among the synchronisation that it knows, so what is handed over by a
// flag or under a lock is a hazard to it. Synccheck reports "divergent threads" at barriers; the manual does not say
// that it leaves out threads that have returned, as hardware does since Volta (CUDA C++ programming guide,
// "__syncthreads(): all non-exited threads"). Nor does the manual say that memcheck takes a cp.async for as short as
// its source is.
constexpr LeftOut kHandsOver{"racecheck", "it follows barriers, not atomics and fences"};
constexpr LeftOut kLeavesEarly{"synccheck", "it may take threads that have returned for divergent ones"};
constexpr LeftOut kEndsEarly{"memcheck", "it may take a copy whose source ends early for a whole one"};

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

std::vector<CorrectKernel> correct_kernels() {
  return {
      {"tiled matrix product",
       [] {
         constexpr int kSize = 48;
         const DeviceBuffer<float> a(counting(kSize * kSize)), b(counting(kSize * kSize)), c(kSize * kSize);
         launch(matmul, {dim3(3, 3), dim3(16, 16)}, nullptr, a.data(), b.data(), c.data(), kSize);
         return doubles(c);
       },
       [] {
         constexpr std::size_t kSize = 48;
         const std::vector<float> a = counting(kSize * kSize);
         std::vector<double> c(kSize * kSize);
         for (std::size_t i = 0; i < kSize; ++i)
           for (std::size_t j = 0; j < kSize; ++j)
             for (std::size_t k = 0; k < kSize; ++k)
               c[i * kSize + j] += static_cast<double>(a[i * kSize + k] * a[k * kSize + j]);
         return c;
       }},
      {"neighbouring bytes",
       [] {
         const DeviceBuffer<unsigned char> out(64);
         launch(neighbouring_bytes, {1, 64}, nullptr, out.data());
         return doubles(out);
       },
       [] {
         std::vector<double> expected(64);
         for (std::size_t i = 0; i < 64; ++i) expected[i] = static_cast<double>(i + 1);
         return expected;
       }},
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
      {"atomic count",
       [] {
         const DeviceBuffer<float> in(counting(256));
         const DeviceBuffer<int> count(zeros<int>(1));
         launch(count_positive, {4, 64}, nullptr, in.data(), count.data());
         return doubles(count);
       },
       [] {
         double count = 0.0;
         for (const float value : counting(256)) count += value > 0.0f ? 1.0 : 0.0;
         return std::vector<double>{count};
       }},
      {"warps that leave", [] { return run(leaves_in_warps, 1, 96, 32, 32); },
       [] {
         double sum = 0.0;
         for (const float value : counting(32)) sum += static_cast<double>(value);
         return std::vector<double>(32, sum);
       }},
      {"pipelined copies",
       [] {
         const DeviceBuffer<float> in(counting(5 * 64)), out(5 * 64);
         launch(pipelined_copy, {1, 64}, nullptr, in.data(), out.data(), 5);
         return doubles(out);
       },
       [] {
         const std::vector<float> in = counting(5 * 64);
         std::vector<double> expected(in.size());
         for (std::size_t i = 0; i < in.size(); ++i) expected[i] = static_cast<double>(in[i / 64 * 64 + 63 - i % 64]);
         return expected;
       }},
      {"copies filled with zeros",
       [] { return run(copy_with_zeros, 1, 32, 126, 32); },
       [] {
         std::vector<float> in = counting(126);
         in.resize(128);
         std::vector<double> expected(32);
         for (std::size_t i = 0; i < 128; ++i) expected[i / 4] += static_cast<double>(in[i]);
         return expected;
       },
       {kEndsEarly}},
      {"block sums", [] { return run(block_sums, 2, 128, 256, 2); },
       [] {
         std::vector<double> expected(2);
         const std::vector<float> in = counting(256);
         for (std::size_t i = 0; i < 256; ++i) expected[i / 128] += 128.0 * static_cast<double>(in[i]);
         return expected;
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
      {"threads return before a barrier",
       [] {
         const DeviceBuffer<float> in(counting(96)), out(zeros<float>(96));
         launch(returns_before_barrier, {1, 96}, nullptr, in.data(), out.data(), 75);
         return doubles(out);
       },
       [] {
         const std::vector<float> in = counting(96);
         std::vector<double> expected(96);
         for (std::size_t t = 0; t + 2 < 75; t += 2) expected[t] = static_cast<double>(in[75 - 1 - (t + 2)]) + 75.0;
         return expected;
       },
       {kLeavesEarly}},
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
      {"a flag and a lock within a block",
       [] { return run(flag_and_lock, 96, 32); },
       [] { return std::vector<double>(32, 42 + 1 + 2 + 3); },
       {kHandsOver}},
      {"copies of bytes and structs",
       [] {
         const DeviceBuffer<float> in(counting(96)), out(96);
         launch(copies_of_bytes, {1, 32}, nullptr, in.data(), out.data(), 12);
         return doubles(out);
       },
       [] {
         const std::vector<float> in = counting(96);
         std::vector<double> expected(96);
         for (std::size_t i = 0; i < 96; ++i) expected[i] = static_cast<double>(in[(31 - i / 3) * 3 + i % 3]);
         return expected;
       }},
      {"dynamic shared memory beyond 48 KiB",
       [] {
         constexpr int kCount = 15000;
         const DeviceBuffer<float> in(counting(kCount)), out(kCount);
         launch(dynamic_shared, {1, 256, kCount * sizeof(float)}, nullptr, in.data(), out.data(), kCount);
         return doubles(out);
       },
       [] {
         const std::vector<float> in = counting(15000);
         return std::vector<double>(in.rbegin(), in.rend());
       }},
  };
}

}  // namespace tandem::test

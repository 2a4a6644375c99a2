// Kernels whose threads work together as a block.
#include "tandem/core/cuda/shared.h"
#include "tandem/kernels/device/reduce.h"
#include "tests/simulator/correct_kernels_support.h"

namespace tandem::test {
namespace {

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

/// All blocks count into one cell.
__global__ void count_positive(const float* in, int* count) {
  if (in[blockIdx.x * blockDim.x + threadIdx.x] > 0.0f) atomicAdd(count, 1);
}

__global__ void block_sums(const float* in, float* out) {
  const float sum = device::block_sum<128>(in[blockIdx.x * 128 + threadIdx.x]);
  const float again = device::block_sum<128>(sum);
  if (threadIdx.x == 0) out[blockIdx.x] = again;
}

__global__ void dynamic_shared(const float* in, float* out, int count) {
  TANDEM_DYNAMIC_SHARED(float, buffer);
  for (int i = static_cast<int>(threadIdx.x); i < count; i += static_cast<int>(blockDim.x)) buffer[i] = in[i];
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < count; i += static_cast<int>(blockDim.x))
    out[i] = buffer[count - 1 - i];
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

}  // namespace

std::vector<CorrectKernel> correct_block_kernels() {
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
      {"block sums", [] { return run(block_sums, 2, 128, 256, 2); },
       [] {
         std::vector<double> expected(2);
         const std::vector<float> in = counting(256);
         for (std::size_t i = 0; i < 256; ++i) expected[i / 128] += 128.0 * static_cast<double>(in[i]);
         return expected;
       }},
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

// Kernels that copy asynchronously, or in bytes and structs.
#include "tandem/core/cuda/shared.h"
#include "tandem/kernels/device/atoms.h"
#include "tests/simulator/correct_kernels_support.h"

namespace tandem::test {
namespace {

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

}  // namespace

std::vector<CorrectKernel> correct_copy_kernels() {
  return {
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
  };
}

}  // namespace tandem::test

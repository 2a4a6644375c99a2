// Tensor-core atoms on whole tiles, for comparison with plain products.
#include "tandem/core/cuda/launch.h"
#include "tandem/core/half.h"
#include "tandem/kernels/device/atoms.h"
#include "tandem/kernels/device/shared.h"
#include "tests/simulator/device_buffer.h"
#include "tests/simulator/matrix_kernels.h"

#include <type_traits>

namespace tandem::test {
namespace {

/// c[16][8] += a[16][16] b[16][8], row-major, through shared memory, ldmatrix and mma.
template <typename T>
__global__ void tile_product(const T* a, const T* b, float* c) {
  TANDEM_SHARED(T, a_tile, [16][16]);
  TANDEM_SHARED(T, b_tile, [16][8]);
  const int t = static_cast<int>(threadIdx.x);
  for (int i = t; i < 256; i += 32) a_tile[i / 16][i % 16] = a[i];
  for (int i = t; i < 128; i += 32) b_tile[i / 8][i % 8] = b[i];
  __syncwarp();
  std::uint32_t a_registers[4], b_registers[4];
  // Matrices 0 and 1 are rows 0-7 and 8-15 of the left half, 2 and 3 of the right one.
  device::ldmatrix_x4(a_registers, &a_tile[t % 16][t / 16 * 8]);
  // B is wanted by columns: transposed. Lanes 16 to 31 repeat the addresses; their matrices are not used.
  device::ldmatrix_x4_trans(b_registers, &b_tile[t % 16][0]);
  const std::uint32_t b_pair[2] = {b_registers[0], b_registers[1]};
  float d[4];
  const int row = t / 4, column = t % 4 * 2;
  for (int i = 0; i < 4; ++i) d[i] = c[(row + i / 2 * 8) * 8 + column + i % 2];
  if constexpr (std::is_same_v<T, Half>) {
    device::mma_m16n8k16_f16(d, a_registers, b_pair);
  } else {
    device::mma_m16n8k16_bf16(d, a_registers, b_pair);
  }
  for (int i = 0; i < 4; ++i) c[(row + i / 2 * 8) * 8 + column + i % 2] = d[i];
}

/// c[16][8] += a[16][8] b[8][8] with tf32 operands.
__global__ void tile_product_tf32(const float* a, const float* b, float* c) {
  const int t = static_cast<int>(threadIdx.x), row = t / 4, k = t % 4, column = t % 4 * 2;
  const std::uint32_t a_registers[4] = {__float_as_uint(a[row * 8 + k]), __float_as_uint(a[(row + 8) * 8 + k]),
                                        __float_as_uint(a[row * 8 + k + 4]), __float_as_uint(a[(row + 8) * 8 + k + 4])};
  const std::uint32_t b_registers[2] = {__float_as_uint(b[k * 8 + row]), __float_as_uint(b[(k + 4) * 8 + row])};
  float d[4];
  for (int i = 0; i < 4; ++i) d[i] = c[(row + i / 2 * 8) * 8 + column + i % 2];
  device::mma_m16n8k8_tf32(d, a_registers, b_registers);
  for (int i = 0; i < 4; ++i) c[(row + i / 2 * 8) * 8 + column + i % 2] = d[i];
}

template <typename T>
std::vector<T> typed(const std::vector<float>& values) {
  std::vector<T> result;
  for (const float value : values) result.push_back(T(value));
  return result;
}

template <typename T>
std::vector<float> product(const std::vector<float>& a, const std::vector<float>& b, const std::vector<float>& c) {
  const DeviceBuffer<T> left(typed<T>(a)), right(typed<T>(b));
  const DeviceBuffer<float> sum(c);
  if constexpr (std::is_same_v<T, float>) {
    launch(tile_product_tf32, {1, 32}, nullptr, left.data(), right.data(), sum.data());
  } else {
    launch(tile_product<T>, {1, 32}, nullptr, left.data(), right.data(), sum.data());
  }
  return sum.download();
}

}  // namespace

std::vector<float> tensor_core_product(MatrixDType dtype, const std::vector<float>& a, const std::vector<float>& b,
                                       const std::vector<float>& c) {
  switch (dtype) {
    case MatrixDType::f16:
      return product<Half>(a, b, c);
    case MatrixDType::bf16:
      return product<BFloat16>(a, b, c);
    case MatrixDType::tf32:
      return product<float>(a, b, c);
  }
  return {};
}

}  // namespace tandem::test

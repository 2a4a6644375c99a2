// Products of a warpgroup and copies of tiles, each alone.
#include "tests/simulator/warpgroup_kernels.h"

#include "tandem/core/cuda/launch.h"
#include "tandem/core/half.h"
#include "tandem/kernels/device/mbarrier.h"
#include "tandem/kernels/device/shared.h"
#include "tandem/kernels/device/wgmma.h"
#include "tests/simulator/device_buffer.h"
#include "tests/simulator/tile_map.h"

namespace tandem::test {
namespace {

using device::Lines;

constexpr int kSize = device::kLineHalves, kChunkBytes = kSize * device::kLineBytes;

/// Both operands are fetched in chunks of 64 lines; one thread waits for them, the others for it.
template <typename T, int kColumns, Lines kA, Lines kB>
__global__ void product(const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b, float* out) {
  TANDEM_DYNAMIC_SHARED(unsigned char, shared);
  TANDEM_SHARED(device::Mbarrier, full);
  unsigned char* const left = shared + device::padding_to_swizzle(device::shared_address(shared));
  unsigned char* const right = left + kChunkBytes;
  constexpr int kChunks = kColumns / kSize;
  const int t = static_cast<int>(threadIdx.x);
  if (t == 0) {
    full.init(1);
    device::publish_mbarriers();
    full.arrive_and_expect((1 + kChunks) * kChunkBytes);
    full.copy_tile(left, &a, 0, 0, 0, 0);
    for (int chunk = 0; chunk < kChunks; ++chunk) {
      const int rows = chunk * kSize;
      full.copy_tile(right + chunk * kChunkBytes, &b, kB == Lines::along_rows ? rows : 0,
                     kB == Lines::along_rows ? 0 : rows, 0, 0);
    }
    full.wait(0);
  }
  __syncthreads();
  float sums[kColumns / 8][4] = {};
  device::wgmma_fence();
  for (unsigned i = 0; i < kSize / device::kProductDepth; ++i)
    device::wgmma<T, kColumns, kA, kB>(
        sums, device::operand_descriptor(kA, device::shared_address(left) + i * device::depth_step(kA), kChunkBytes),
        device::operand_descriptor(kB, device::shared_address(right) + i * device::depth_step(kB), kChunkBytes));
  device::wgmma_commit();
  device::wgmma_wait<0>();
  for (int j = 0; j < kColumns / 8; ++j)
    for (int i = 0; i < 4; ++i)
      out[(t / 32 * 16 + t % 32 / 4 + i / 2 * 8) * kColumns + j * 8 + t % 4 * 2 + i % 2] = sums[j][i];
}

template <typename T>
std::vector<T> typed(const std::vector<float>& values, int rows, int columns, bool transposed) {
  std::vector<T> result;
  for (int i = 0; i < (transposed ? columns : rows); ++i)
    for (int j = 0; j < (transposed ? rows : columns); ++j)
      result.push_back(T(values[static_cast<std::size_t>(transposed ? j * columns + i : i * columns + j)]));
  return result;
}

template <typename T, int kColumns, Lines kA, Lines kB>
std::vector<float> run_product(const std::vector<float>& a, const std::vector<float>& b) {
  const DeviceBuffer<T> on_a(typed<T>(a, kSize, kSize, kA == Lines::along_rows));
  const DeviceBuffer<T> on_b(typed<T>(b, kSize, kColumns, kB == Lines::along_depth));
  const DeviceBuffer<float> out(kSize * kColumns);
  constexpr cuuint64_t kInner = kB == Lines::along_rows ? kColumns : kSize, kOuter = kSize * kColumns / kInner;
  launch(product<T, kColumns, kA, kB>, {1, 128, device::kSwizzledBytes + (1 + kColumns / kSize) * kChunkBytes}, nullptr,
         map_of_halves(on_a.data(), {kSize, kSize, 1, 1}, {kSize, kSize, 1, 1}),
         map_of_halves(on_b.data(), {kInner, kOuter, 1, 1}, {kSize, kSize, 1, 1}), out.data());
  return out.download();
}

/// A tile of 4 x 8 x 8 pixels and 16 channels, not swizzled, as floats.
__global__ void fetch(const __grid_constant__ CUtensorMap map, int image, int line, int column, int channel,
                      float* out) {
  constexpr int kElements = 4 * 8 * 8 * 16;
  TANDEM_DYNAMIC_SHARED(Half, tile);
  TANDEM_SHARED(device::Mbarrier, full);
  if (threadIdx.x == 0) {
    full.init(1);
    device::publish_mbarriers();
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    full.arrive_and_expect(kElements * 2);
    full.copy_tile(tile, &map, channel, column, line, image);
  }
  full.wait(0);
  for (int i = static_cast<int>(threadIdx.x); i < kElements; i += 32) out[i] = static_cast<float>(tile[i]);
}

}  // namespace

std::vector<float> warpgroup_product(const WarpgroupProductCase& one, const std::vector<float>& a,
                                     const std::vector<float>& b) {
  const auto with_lines = [&]<typename T, int kColumns>() {
    constexpr Lines kDepth = Lines::along_depth, kRows = Lines::along_rows;
    if (one.a_along_depth)
      return one.b_along_depth ? run_product<T, kColumns, kDepth, kDepth>(a, b)
                               : run_product<T, kColumns, kDepth, kRows>(a, b);
    return one.b_along_depth ? run_product<T, kColumns, kRows, kDepth>(a, b)
                             : run_product<T, kColumns, kRows, kRows>(a, b);
  };
  if (one.bf16)
    return one.columns == 128 ? with_lines.operator()<BFloat16, 128>() : with_lines.operator()<BFloat16, 256>();
  return one.columns == 128 ? with_lines.operator()<Half, 128>() : with_lines.operator()<Half, 256>();
}

std::vector<float> fetched_tile(const std::vector<float>& numbers, int image, int line, int column, int channel) {
  const DeviceBuffer<Half> from(typed<Half>(numbers, 1, static_cast<int>(numbers.size()), false));
  const DeviceBuffer<float> out(4 * 8 * 8 * 16);
  launch(fetch, {1, 32, 4 * 8 * 8 * 16 * 2}, nullptr, map_of_halves(from.data(), {24, 7, 5, 3}, {16, 8, 8, 4}, false),
         image, line, column, channel, out.data());
  return out.download();
}

}  // namespace tandem::test

// A tile's halo in shared memory, and patches read from it. No matrix of patches is written, not even there: each lane
// of a tensor-core product reads its elements where they lie.
#pragma once

#include "kernels/conv/few_channels/band.h"
#include "kernels/device/half.h"
#include "kernels/device/reduce.h"

#include <cstdint>

namespace tandem::kernels::cuda::few_channels {

constexpr int kThreads = 128;
constexpr int kWarps = kThreads / device::kWarpThreads;

/// Stands for the place of an element that is 0 and lies nowhere, and of one that is 1.
constexpr int kNowhere = -1, kOne = -2;

/// Copies the halo of a tile; what lies outside of the image becomes 0. Each warp takes every kWarps-th line.
template <typename T>
__device__ void load_halo(const T* images, const Band& band, const TilePlace& at, T* halo) {
  const int lane = static_cast<int>(threadIdx.x) % device::kWarpThreads;
  const int top = at.line * band.stride_down + band.first_line;
  const int left = at.column * band.stride_across + band.first_element;
  for (int i = static_cast<int>(threadIdx.x) / device::kWarpThreads; i < band.halo_lines; i += kWarps) {
    const int line = top + i;
    const bool in_image = line >= 0 && line < band.image_lines;
    const T* const from = images + (in_image ? (at.image * band.image_lines + line) * band.image_row : 0);
    for (int j = lane; j < band.pitch; j += device::kWarpThreads) {
      const int element = left + j;
      const bool inside = in_image && element >= 0 && element < band.image_row;
      halo[i * band.pitch + j] = inside ? from[element] : T{};
    }
  }
}

/// Element `offset` of a patch that begins at `patch`; either may be kNowhere, `offset` also kOne.
template <typename T>
__device__ std::uint32_t patch_bits(const T* halo, int patch, int offset) {
  if (offset == kOne && patch != kNowhere) return device::from_float<T>(1.0f).bits;
  return patch < 0 || offset < 0 ? 0u : halo[patch + offset].bits;
}

/// Two elements as a tensor core takes them.
__device__ inline std::uint32_t pair_of(std::uint32_t first, std::uint32_t second) { return first | second << 16; }

}  // namespace tandem::kernels::cuda::few_channels

// A tile's halo in shared memory, and patches read from it. No matrix of patches is written, not even there: each lane
// of a tensor-core product reads its elements where they lie.
#pragma once

#include "tandem/kernels/conv/few_channels/band.h"
#include "tandem/kernels/device/half.h"
#include "tandem/kernels/device/reduce.h"

#include <cstdint>

namespace tandem::kernels::cuda::few_channels {

constexpr int kThreads = 128;
constexpr int kWarps = kThreads / device::kWarpThreads;

/// Stands for the place of an element that is 0 and lies nowhere, and of one that is 1.
constexpr int kNowhere = -1, kOne = -2;

/// Copies elements [begin, end) of an image to where `place(element)` says, nowhere if that is negative. Each request
/// of a warp is to two whole sectors; lanes that would be before the first element or past the last read that.
template <typename T, typename Place>
__device__ void copy_run(const T* image, int begin, int end, T* halo, const Place& place) {
  if (begin >= end) return;
  constexpr int kSector = 32 / static_cast<int>(sizeof(T));
  const int skew = static_cast<int>(reinterpret_cast<std::uintptr_t>(image + begin) / sizeof(T) % kSector);
  const int lane = static_cast<int>(threadIdx.x) % device::kWarpThreads;
#pragma unroll 1  // unrolled, the forward pass has too few registers on sm_80
  for (int first = begin - skew + static_cast<int>(threadIdx.x) - lane; first < end; first += kThreads) {
    const int element = first + lane, there = element < begin ? begin : element < end ? element : end - 1;
    const T value = image[there];
    const int to = there == element ? place(element) : kNowhere;
    if (to >= 0) halo[to] = value;
  }
}

/// Copies the halo of a tile; what lies outside of the image becomes 0.
template <typename T>
__device__ void load_halo(const T* images, const Band& band, const TilePlace& at, T* halo) {
  const int lane = static_cast<int>(threadIdx.x) % device::kWarpThreads;
  const int top = at.line * band.stride_down + band.first_line;
  const int left = at.column * band.stride_across + band.first_element;
  for (int i = static_cast<int>(threadIdx.x) / device::kWarpThreads; i < band.halo_lines; i += kWarps) {
    const bool in_image = top + i >= 0 && top + i < band.image_lines;
    for (int j = lane; j < band.pitch; j += device::kWarpThreads) {
      const bool inside = in_image && left + j >= 0 && left + j < band.image_row && j < band.halo_row;
      if (!inside) halo[i * band.pitch + j] = T{};
    }
  }

  const T* const image = images + at.image * band.image_lines * band.image_row;
  const auto place = [&](int element) {
    unsigned column = static_cast<unsigned>(element);
    const int line = static_cast<int>(band.by_image_row.split(column)), in_halo = static_cast<int>(column) - left;
    return in_halo >= 0 && in_halo < band.halo_row ? (line - top) * band.pitch + in_halo : kNowhere;
  };
  const int first_line = top > 0 ? top : 0;
  const int end_line = top + band.halo_lines < band.image_lines ? top + band.halo_lines : band.image_lines;
  if (band.columns == band.output_columns) {  // whole lines follow each other in the image
    copy_run(image, first_line * band.image_row, end_line * band.image_row, halo, place);
  } else {
    const int begin = left > 0 ? left : 0;
    const int end = left + band.halo_row < band.image_row ? left + band.halo_row : band.image_row;
    for (int line = first_line; line < end_line; ++line)
      copy_run(image + line * band.image_row, begin, end, halo + (line - top) * band.pitch,
               [&](int element) { return element - left; });
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

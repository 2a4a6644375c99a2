// Where the windows of a tile go whose outputs are pooled.
#pragma once

#include "tandem/kernels/conv/implicit_gemm/pooled_result.cuh"
#include "tandem/kernels/conv/stationary/halo.cuh"

namespace tandem::kernels::cuda::stationary {

using implicit_gemm::kWindow;

/// The number among the pooled pixels of all images, or -1 past the end of an image.
__device__ inline int pooled_pixel(const TileGrid& grid, const TilePlace& tile, int window) {
  const TilePixel<kWindow> pixel(window * implicit_gemm::kWindowRows);
  const int line = tile.line + pixel.line, column = tile.column + pixel.column;
  if (line >= grid.lines || column >= grid.columns) return -1;
  const int pooled_line = (tile.image * grid.lines + line) / kWindow;
  return pooled_line * (grid.columns / kWindow) + column / kWindow;
}

}  // namespace tandem::kernels::cuda::stationary

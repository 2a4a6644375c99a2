// Results of tiles whose rows are pixels of images, not neighbours among all pixels.
#pragma once

#include "tandem/kernels/conv/implicit_gemm/results.cuh"

namespace tandem::kernels::cuda::implicit_gemm {

/// Results by store_tile(): a grid says which pixel of which image a row of a tile is.
template <typename Result>
struct PixelTileWriter {
  Result result;

  /// What store_tile() asks of a result, for one tile. Grid: place(tile), and pixel_of_row(place, row), -1 for none.
  template <typename T, typename Grid>
  struct OfTile {
    static constexpr bool kSumsColumns = Result::kSumsColumns;

    const Result& result;
    const Grid& grid;
    decltype(grid.place(0)) place;
    int tile;

    __device__ device::Vector<float, 2> addend(int column) const { return result.addend(column); }
    __device__ float finished(float sum) const { return result.finished(sum); }
    __device__ bool store(int row, int column, device::Vector<T, kVectorSize<T>>& values) const {
      const int pixel = grid.pixel_of_row(place, row);
      return result.store(pixel < 0 ? result.rows : pixel, column, values);
    }
    __device__ bool sums_columns() const { return result.sums_columns(); }
    __device__ void store_column_sum(int, int column, float sum) const { result.store_column_sum(tile, column, sum); }
  };

  template <typename T, typename Shape, typename Grid>
  __device__ void write_tile(const Accumulators<Shape>& accumulators, const WarpPlace<Shape>& at, const Grid& grid,
                             int tile, int first_column, T* buffer) const {
    store_tile(OfTile<T, Grid>{result, grid, grid.place(tile), tile}, accumulators, at, 0, first_column, buffer);
  }
};

}  // namespace tandem::kernels::cuda::implicit_gemm

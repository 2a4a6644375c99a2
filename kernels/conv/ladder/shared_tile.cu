// Second step of the ladder: 16 x 16 results to a block, which loads each number once for 16 threads.
#include "tandem/core/cuda/current_stream.h"
#include "tandem/core/cuda/launch.h"
#include "tandem/kernels/conv/ladder/ladder.h"
#include "tandem/kernels/conv/tile/input_phase.cuh"
#include "tandem/kernels/conv/tile/patches.cuh"
#include "tandem/kernels/device/dispatch.h"
#include "tandem/kernels/device/shared.h"
#include "tandem/kernels/gemm/gate.cuh"

namespace tandem::kernels::cuda::ladder::shared_tile {
namespace {

constexpr int kSide = 16;

/// A step's 16 rows of an operand, 16 deep. Threads whose x are neighbours load neighbours in memory.
template <typename Operand>
struct Loader {
  const Operand& operand;
  int row_in_tile, depth_in_tile;
  typename Operand::Row row;

  __device__ Loader(const Operand& from, std::int64_t first_row, int x, int y)
      : operand(from),
        row_in_tile(from.along_depth() ? y : x),
        depth_in_tile(from.along_depth() ? x : y),
        row(from.row(first_row + row_in_tile)) {}

  __device__ void load(float (&tile)[kSide][kSide + 1], std::int64_t depth, std::int64_t depth_end) const {
    tile[row_in_tile][depth_in_tile] = operand.template load<1>(row, depth + depth_in_tile, depth_end)[0];
  }
};

/// Thread (x, y) of a block makes column x of row y of its tile.
template <typename A, typename B, typename Result>
__global__ void __launch_bounds__(kSide* kSide) shared_tile_product(A a, B b, Result result, std::int64_t depth_end) {
  // Read and written by columns, too: one more, and neighbours are in other banks.
  TANDEM_SHARED(float, a_tile, [kSide][kSide + 1]);
  TANDEM_SHARED(float, b_tile, [kSide][kSide + 1]);
  const int x = static_cast<int>(threadIdx.x) % kSide, y = static_cast<int>(threadIdx.x) / kSide;
  const std::int64_t first_row = std::int64_t{blockIdx.x} * kSide, first_column = std::int64_t{blockIdx.y} * kSide;
  const Loader<A> from_a(a, first_row, x, y);
  const Loader<B> from_b(b, first_column, x, y);
  float sum = 0.0f;
  for (std::int64_t depth = 0; depth < depth_end; depth += kSide) {
    from_a.load(a_tile, depth, depth_end);
    from_b.load(b_tile, depth, depth_end);
    __syncthreads();
#pragma unroll
    for (int k = 0; k < kSide; ++k) sum += a_tile[y][k] * b_tile[x][k];
    __syncthreads();
  }
  result.template store<1>(first_row + y, first_column + x, {sum});
}

template <typename A, typename B, typename Result>
void multiply(const A& a, const B& b, const Result& result, std::int64_t depth, const Tensor& on) {
  const dim3 grid(static_cast<unsigned>((result.rows + kSide - 1) / kSide),
                  static_cast<unsigned>((result.columns + kSide - 1) / kSide));
  launch(shared_tile_product<A, B, Result>, {grid, kSide * kSide}, tandem::cuda::current_stream(on), a, b, result,
         depth);
}

}  // namespace

void forward(const ConvGeometry& g, const Tensor& x, const Tensor& w, const Epilogue& epilogue, const Out& y) {
  device::dispatch(y.dtype(), "conv2d_forward", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const std::int64_t pixels = g.n * g.p * g.q, depth = g.r * g.s * g.c;
    const MatrixResult<T> result{.data = y.data<T>(),
                                 .rows = pixels,
                                 .columns = g.k,
                                 .row_stride = g.k,
                                 .bias = data_or_null<T>(epilogue.bias),
                                 .relu = epilogue.relu};
    multiply(tile::Patches<T>{x.data<T>(), tile::TileGeometry(g), pixels}, Matrix<T>{w.data<T>(), g.k, depth, 1},
             result, depth, y);
  });
  if (epilogue.mask.defined()) sign_mask(y, epilogue.mask);
}

void backward_input(const ConvGeometry& g, const Tensor& grad_y, const Tensor& mask, const Tensor& w,
                    const Out& grad_x) {
  device::dispatch(grad_x.dtype(), "conv2d_backward_input", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const Gate<T> gate{.bits = data_or_null<std::uint8_t>(mask)};
    for (std::int64_t row = 0; row < std::min(g.stride_h, g.h); ++row) {
      for (std::int64_t column = 0; column < std::min(g.stride_w, g.w); ++column) {
        const tile::InputPhase phase(g, row, column);
        const std::int64_t pixels = phase.pixels(g.n);
        const tile::PhaseResult<T> result{{.data = grad_x.data<T>(), .rows = pixels, .columns = g.c, .row_stride = g.c},
                                          phase};
        multiply(tile::GradientPatches<T>{grad_y.data<T>(), gate, phase, pixels, g.k},
                 tile::TransposedWeights<T>{w.data<T>(), phase}, result, phase.taps() * g.k, grad_x);
      }
    }
  });
}

void backward_weight(const ConvGeometry& g, const Tensor& x, const Tensor& grad_y, const Tensor& mask,
                     const Out& grad_w) {
  device::dispatch(grad_w.dtype(), "conv2d_backward_weight", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const std::int64_t pixels = g.n * g.p * g.q, columns = g.r * g.s * g.c;
    const Gate<T> gate{.bits = data_or_null<std::uint8_t>(mask)};
    const MatrixResult<T> result{.data = grad_w.data<T>(), .rows = g.k, .columns = columns, .row_stride = columns};
    multiply(Matrix<T>{grad_y.data<T>(), g.k, 1, g.k, gate},
             tile::PatchColumns<T>{x.data<T>(), tile::TileGeometry(g), columns}, result, pixels, grad_w);
  });
}

}  // namespace tandem::kernels::cuda::ladder::shared_tile

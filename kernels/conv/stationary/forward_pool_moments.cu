// The forward pass with weights that stay in shared memory, ending in bias and the maxima of 2 x 2 outputs, and leaving
// the moments of each tile's maxima.
#include "tandem/kernels/conv/implicit_gemm/pooled_moments_result.cuh"
#include "tandem/kernels/conv/implicit_gemm/product.cuh"
#include "tandem/kernels/conv/stationary/kernel.cuh"
#include "tandem/kernels/conv/stationary/pooled_pixel.cuh"
#include "tandem/kernels/conv/stationary/stationary.h"

namespace tandem::kernels::cuda::stationary {
namespace {

constexpr PassKind kPass = PassKind::forward_pool_moments;

template <typename T>
struct WindowMomentsTaker {
  implicit_gemm::PooledMomentsResult<T> result;

  template <typename Shape>
  __device__ void write_tile(const Accumulators<Shape>& accumulators, const WarpPlace<Shape>& at, const TileGrid& grid,
                             int tile, int first_column, T* buffer) const {
    const TilePlace place = grid.place(tile);
    const int count = grid.pixels(place) / implicit_gemm::kWindowRows;
    result.write_windows(accumulators, at, first_column, buffer, tile, count, [&](int window) {
      const int pixel = pooled_pixel(grid, place, window);
      return pixel < 0 ? result.rows : pixel;
    });
  }
};

}  // namespace

std::int64_t pool_moment_parts(const ConvGeometry& g) { return tiles_of(Task(g, kPass)); }

void forward_pool_moments(const ConvGeometry& g, const Tensor& x, const Tensor& w, const Tensor& bias,
                          const PooledMomentsOutput& to) {
  require_no_obstacle("conv2d_pool_forward", obstacle, kPass, g,
                      operands_of(to.y.dtype(), x, w, bias, to.y, to.positions));
  implicit_gemm::dispatch_halves(to.y.dtype(), "conv2d_pool_forward", [&]<typename T>(TypeTag<T>) {
    const Task task(g, kPass);
    const implicit_gemm::PooledMomentsResult<T> result{to.y.data<T>(),
                                                       static_cast<int>(g.n * (g.p / kWindow) * (g.q / kWindow)),
                                                       static_cast<int>(g.k),
                                                       data_or_null<T>(bias),
                                                       data_or_null<std::uint8_t>(to.positions),
                                                       data_or_null<double>(to.moments),
                                                       static_cast<int>(pool_moment_parts(g))};
    launch_task<T, kWindow, false>(task, Plan(task), x.data<T>(), w.data<T>(), WindowMomentsTaker<T>{result},
                                   to.y.device());
  });
}

}  // namespace tandem::kernels::cuda::stationary

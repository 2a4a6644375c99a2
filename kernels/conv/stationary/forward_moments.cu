// The forward pass with weights that stay in shared memory, leaving the moments of each tile.
#include "tandem/kernels/conv/implicit_gemm/moments_result.cuh"
#include "tandem/kernels/conv/implicit_gemm/product.cuh"
#include "tandem/kernels/conv/stationary/kernel.cuh"
#include "tandem/kernels/conv/stationary/stationary.h"

namespace tandem::kernels::cuda::stationary {
namespace {

template <typename T>
struct MomentsTaker {
  implicit_gemm::MomentsResult<T> result;

  template <typename Shape>
  __device__ void write_tile(const Accumulators<Shape>& accumulators, const WarpPlace<Shape>& at, const TileGrid& grid,
                             int tile, int first_column, T* buffer) const {
    const TilePlace place = grid.place(tile);
    result.write_rows(accumulators, at, first_column, buffer, tile, grid.pixels(place), [&](int row) {
      const int pixel = grid.pixel(place, TilePixel<1>(row));
      return pixel < 0 ? result.rows : pixel;
    });
  }
};

}  // namespace

std::int64_t moment_parts(const ConvGeometry& g) { return tiles_of(Task(g, PassKind::forward)); }

void forward_moments(const ConvGeometry& g, const Tensor& x, const Tensor& w, const Tensor& bias, const Out& y,
                     const Out& moments) {
  constexpr PassKind kPass = PassKind::forward;
  require_no_obstacle("conv2d_forward_with_moments", obstacle, kPass, g, operands_of(y.dtype(), x, w, bias, y));
  implicit_gemm::dispatch_halves(y.dtype(), "conv2d_forward_with_moments", [&]<typename T>(TypeTag<T>) {
    const Task task(g, kPass);
    const implicit_gemm::MomentsResult<T> result{y.data<T>(),
                                                 static_cast<int>(g.n * g.p * g.q),
                                                 static_cast<int>(g.k),
                                                 data_or_null<T>(bias),
                                                 moments.data<double>(),
                                                 static_cast<int>(moment_parts(g))};
    launch_task<T, 1, false>(task, Plan(task), x.data<T>(), w.data<T>(), MomentsTaker<T>{result}, y.device());
  });
}

}  // namespace tandem::kernels::cuda::stationary

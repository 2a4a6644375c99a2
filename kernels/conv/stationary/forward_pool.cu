// The forward pass with weights that stay in shared memory, ending in bias, ReLU and the maxima of 2 x 2 outputs.
#include "tandem/kernels/conv/implicit_gemm/pooled_result.cuh"
#include "tandem/kernels/conv/implicit_gemm/product.cuh"
#include "tandem/kernels/conv/stationary/kernel.cuh"
#include "tandem/kernels/conv/stationary/pooled_pixel.cuh"
#include "tandem/kernels/conv/stationary/stationary.h"

namespace tandem::kernels::cuda::stationary {
namespace {

/// A tile's windows become pixels of y.
template <typename T>
struct WindowTaker {
  implicit_gemm::PooledResult<T> result;

  template <typename Shape>
  __device__ void write_tile(const Accumulators<Shape>& accumulators, const WarpPlace<Shape>& at, const TileGrid& grid,
                             int tile, int first_column, T* buffer) const {
    const TilePlace place = grid.place(tile);
    result.write_windows(accumulators, at, first_column, buffer, [&](int window) {
      const int pixel = pooled_pixel(grid, place, window);
      return pixel < 0 ? result.rows : pixel;
    });
  }
};

}  // namespace

void forward_pool(const ConvGeometry& g, const Tensor& x, const Tensor& w, const Tensor& bias, const PooledOutput& to) {
  constexpr PassKind kPass = PassKind::forward_pool;
  require_no_obstacle("conv_bias_relu_pool_forward", obstacle, kPass, g,
                      operands_of(to.y.dtype(), x, w, bias, to.y, to.positions));
  implicit_gemm::dispatch_halves(to.y.dtype(), "conv_bias_relu_pool_forward", [&]<typename T>(TypeTag<T>) {
    const Task task(g, kPass);
    const implicit_gemm::PooledResult<T> result{to.y.data<T>(),
                                                static_cast<int>(g.n * (g.p / kWindow) * (g.q / kWindow)),
                                                static_cast<int>(g.k),
                                                data_or_null<T>(bias),
                                                data_or_null<std::uint8_t>(to.positions),
                                                data_or_null<std::uint8_t>(to.mask)};
    launch_task<T, kWindow, false>(task, Plan(task), x.data<T>(), w.data<T>(), WindowTaker<T>{result}, to.y.device());
  });
}

}  // namespace tandem::kernels::cuda::stationary

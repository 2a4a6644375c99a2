// The forward pass with weights that stay in shared memory.
#include "kernels/conv/implicit_gemm/forward.cuh"
#include "kernels/conv/implicit_gemm/product.cuh"
#include "kernels/conv/stationary/kernel.cuh"

namespace tandem::kernels::cuda::stationary {

void forward(const ConvGeometry& g, const Tensor& x, const Tensor& w, const Epilogue& epilogue, const Tensor& y) {
  constexpr StationaryPass kPass = StationaryPass::forward;
  require_no_obstacle("conv2d_forward", kPass, g, y.dtype(), {x, w, epilogue.bias, y});
  implicit_gemm::dispatch_halves(y.dtype(), "conv2d_forward", [&]<typename T>(TypeTag<T>) {
    const Task task(g, kPass);
    const TileTaker taker{implicit_gemm::forward_result<T>(g, epilogue, y)};
    launch_task<T, 1, false>(task, Plan(task), x.data<T>(), w.data<T>(), taker, y.device());
  });
}

}  // namespace tandem::kernels::cuda::stationary

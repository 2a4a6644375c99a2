// The forward pass by warpgroups.
#include "kernels/conv/implicit_gemm/forward.cuh"
#include "kernels/conv/implicit_gemm/product.cuh"
#include "kernels/conv/warpgroup/image_product.cuh"

namespace tandem::kernels::cuda::warpgroup {

void forward(const ConvGeometry& g, const Tensor& x, const Tensor& w, const Epilogue& epilogue, const Tensor& y) {
  require_no_obstacle("conv2d_forward", g, y.dtype(), {x, w, epilogue.bias, y});
  const stationary::Task task(g, StationaryPass::forward);
  implicit_gemm::dispatch_halves(y.dtype(), "conv2d_forward", [&]<typename T>(TypeTag<T>) {
    const implicit_gemm::TileTaker taker{implicit_gemm::forward_result<T>(g, epilogue, y)};
    launch_task<T, Lines::along_depth>(g, task, x, w, taker);
  });
}

}  // namespace tandem::kernels::cuda::warpgroup

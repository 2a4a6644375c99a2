// The forward pass by warpgroups.
#include "tandem/kernels/conv/implicit_gemm/forward.cuh"
#include "tandem/kernels/conv/implicit_gemm/product.cuh"
#include "tandem/kernels/conv/warpgroup/image_product.cuh"
#include "tandem/kernels/conv/warpgroup/warpgroup.h"
#include "tandem/kernels/device/warpgroup_layout.h"

namespace tandem::kernels::cuda::warpgroup {

void forward(const ConvGeometry& g, const Tensor& x, const Tensor& w, const Epilogue& epilogue, const Out& y) {
  require_no_obstacle("conv2d_forward", obstacle, PassKind::forward, g, operands_of(y.dtype(), x, w, epilogue.bias, y));
  const stationary::Task task(g, PassKind::forward);
  implicit_gemm::dispatch_halves(y.dtype(), "conv2d_forward", [&]<typename T>(TypeTag<T>) {
    const implicit_gemm::PixelTileWriter writer{implicit_gemm::forward_result<T>(g, epilogue, y)};
    launch_task<T, Lines::along_depth>(g, task, x, w, writer);
  });
}

}  // namespace tandem::kernels::cuda::warpgroup

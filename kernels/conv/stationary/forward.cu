// The forward pass with weights that stay in shared memory.
#include "tandem/kernels/conv/implicit_gemm/forward.cuh"
#include "tandem/kernels/conv/implicit_gemm/product.cuh"
#include "tandem/kernels/conv/stationary/kernel.cuh"
#include "tandem/kernels/conv/stationary/stationary.h"

namespace tandem::kernels::cuda::stationary {

void forward(const ConvGeometry& g, const Tensor& x, const Tensor& w, const Epilogue& epilogue, const Out& y) {
  constexpr PassKind kPass = PassKind::forward;
  require_no_obstacle("conv2d_forward", obstacle, kPass, g, operands_of(y.dtype(), x, w, epilogue.bias, y));
  implicit_gemm::dispatch_halves(y.dtype(), "conv2d_forward", [&]<typename T>(TypeTag<T>) {
    const Task task(g, kPass);
    const PixelTileWriter writer{implicit_gemm::forward_result<T>(g, epilogue, y)};
    launch_task<T, 1, false>(task, Plan(task), x.data<T>(), w.data<T>(), writer, y.device());
  });
}

}  // namespace tandem::kernels::cuda::stationary

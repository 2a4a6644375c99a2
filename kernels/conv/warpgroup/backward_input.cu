// The input's gradient by warpgroups: the forward pass of the gradient of y, its weights turned as they are multiplied,
// its taps running the other way. On the way out as in implicit_gemm/backward_input.cu.
#include "core/memory.h"
#include "kernels/conv/cudnn/library_passes.h"
#include "kernels/conv/implicit_gemm/input_product.cuh"
#include "kernels/conv/implicit_gemm/product.cuh"
#include "kernels/conv/warpgroup/image_product.cuh"
#include "kernels/gemm/column_sum.h"

namespace tandem::kernels::cuda::warpgroup {

void backward_input_for(const ConvGeometry& g, const Tensor& grad_y, const Tensor& mask, const Tensor& w,
                        const LayerBelow& below, const Tensor& grad_x) {
  require_no_obstacle("conv2d_backward_input", g, grad_x.dtype(), {grad_y, w, grad_x});
  const stationary::Task task(g, StationaryPass::backward_input);
  const Tensor gradient = masked_gradient(grad_y, mask);
  const MemoryTagScope tag(MemoryTag::workspace);
  const std::int64_t boxes = boxes_of(box_of(task), task.images, task.lines(), task.line());
  const Tensor column_sums =
      below.grad_bias.defined() ? Tensor::empty({boxes, g.c}, {.device = grad_x.device()}) : Tensor();
  implicit_gemm::dispatch_halves(grad_x.dtype(), "conv2d_backward_input", [&]<typename T>(TypeTag<T>) {
    const implicit_gemm::TileTaker taker{implicit_gemm::input_result<T>(g, below, column_sums, grad_x)};
    launch_task<T, Lines::along_rows>(g, task, gradient, w, taker);
  });
  if (column_sums.defined()) column_sum_of_parts(column_sums, below.grad_bias);
}

void backward_input(const ConvGeometry& g, const Tensor& grad_y, const Tensor& mask, const Tensor& w,
                    const Tensor& grad_x) {
  backward_input_for(g, grad_y, mask, w, {}, grad_x);
}

}  // namespace tandem::kernels::cuda::warpgroup

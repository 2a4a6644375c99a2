// The input's gradient by warpgroups: the forward pass of the gradient of y, its weights transposed as they are
// multiplied, its taps running the other way. On the way out as in implicit_gemm/backward_input.cu.
#include "tandem/core/memory.h"
#include "tandem/kernels/conv/implicit_gemm/input_product.cuh"
#include "tandem/kernels/conv/implicit_gemm/product.cuh"
#include "tandem/kernels/conv/warpgroup/image_product.cuh"
#include "tandem/kernels/conv/warpgroup/warpgroup.h"
#include "tandem/kernels/device/warpgroup_layout.h"
#include "tandem/kernels/gemm/column_sum.h"

namespace tandem::kernels::cuda::warpgroup {

void backward_input_below(const ConvGeometry& g, const Tensor& grad_y, const Tensor& mask, const Tensor& w,
                          const LayerBelow& below, const Out& grad_x) {
  require_no_obstacle("conv2d_backward_input", obstacle, PassKind::backward_input, g,
                      operands_of(grad_x.dtype(), grad_y, w, grad_x));
  const stationary::Task task(g, PassKind::backward_input);
  const Tensor gradient = masked_gradient(grad_y, mask);
  const MemoryTagScope tag(MemoryTag::workspace);
  const std::int64_t boxes = boxes_of(box_of(task), task.images, task.lines(), task.line());
  const Out column_sums(below.grad_bias.defined() ? Tensor::empty({boxes, g.c}, {.device = grad_x.device()})
                                                  : Tensor());
  implicit_gemm::dispatch_halves(grad_x.dtype(), "conv2d_backward_input", [&]<typename T>(TypeTag<T>) {
    const implicit_gemm::PixelTileWriter writer{implicit_gemm::input_result<T>(g, below, column_sums, grad_x)};
    launch_task<T, Lines::along_rows>(g, task, gradient, w, writer);
  });
  if (column_sums.defined()) column_sum_of_parts(column_sums, below.grad_bias);
}

void backward_input(const ConvGeometry& g, const Tensor& grad_y, const Tensor& mask, const Tensor& w,
                    const Out& grad_x) {
  backward_input_below(g, grad_y, mask, w, {}, grad_x);
}

}  // namespace tandem::kernels::cuda::warpgroup

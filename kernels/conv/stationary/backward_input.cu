// The input's gradient with weights that stay in shared memory: the forward pass of the gradient of y, its weights
// transposed, its taps running the other way. On the way out as in implicit_gemm/backward_input.cu.
#include "tandem/core/memory.h"
#include "tandem/kernels/conv/implicit_gemm/input_product.cuh"
#include "tandem/kernels/conv/implicit_gemm/product.cuh"
#include "tandem/kernels/conv/stationary/kernel.cuh"
#include "tandem/kernels/conv/stationary/stationary.h"
#include "tandem/kernels/gemm/column_sum.h"

namespace tandem::kernels::cuda::stationary {

void backward_input_below(const ConvGeometry& g, const Tensor& grad_y, const Tensor& mask, const Tensor& w,
                          const LayerBelow& below, const Out& grad_x) {
  constexpr PassKind kPass = PassKind::backward_input;
  require_no_obstacle("conv2d_backward_input", obstacle, kPass, g, operands_of(grad_x.dtype(), grad_y, w, grad_x));
  const Task task(g, kPass);
  const Plan plan(task);
  const Tensor gradient = masked_gradient(grad_y, mask);
  const MemoryTagScope tag(MemoryTag::workspace);
  const Out column_sums(below.grad_bias.defined() ? Tensor::empty({tiles_of(task), g.c}, {.device = grad_x.device()})
                                                  : Tensor());
  implicit_gemm::dispatch_halves(grad_x.dtype(), "conv2d_backward_input", [&]<typename T>(TypeTag<T>) {
    const PixelTileWriter writer{implicit_gemm::input_result<T>(g, below, column_sums, grad_x)};
    launch_task<T, 1, true>(task, plan, gradient.data<T>(), w.data<T>(), writer, grad_x.device());
  });
  if (column_sums.defined()) column_sum_of_parts(column_sums, below.grad_bias);
}

void backward_input(const ConvGeometry& g, const Tensor& grad_y, const Tensor& mask, const Tensor& w,
                    const Out& grad_x) {
  backward_input_below(g, grad_y, mask, w, {}, grad_x);
}

}  // namespace tandem::kernels::cuda::stationary

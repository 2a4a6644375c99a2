// The weights' gradient on tensor cores: the gradient of y times patches of x, summed up over all output pixels; where
// there are few tiles, in parts of a number of pixels that depends on the sizes alone, which are then added in order.
#include "tandem/core/memory.h"
#include "tandem/kernels/conv/implicit_gemm/implicit_gemm.h"
#include "tandem/kernels/conv/implicit_gemm/product.cuh"
#include "tandem/kernels/conv/implicit_gemm/weight_product.cuh"
#include "tandem/kernels/gemm/product.cuh"

namespace tandem::kernels::cuda::implicit_gemm {
namespace {

template <typename Numbers>
void run(const ConvGeometry& g, const WeightPlan& plan, const Tensor& x, const Tensor& grad_y, const Out& grad_w) {
  using T = typename Numbers::Element;
  const ProductSize size{.rows = g.k,
                         .columns = g.r * g.s * g.c,
                         .depth = g.n * g.p * g.q,
                         .parts = plan.parts,
                         .part_steps = plan.part_steps};
  const cudaStream_t stream = tandem::cuda::current_stream(grad_w.device());
  const auto multiply_to = [&](float* parts) {
    const WeightProduct<T> product(g, x, grad_y, grad_w, parts);
    const auto by = [&]<typename Shape>(Shape) {
      launch_product<Numbers, Shape>(size, product.gradient, product.patches, product.result, stream);
    };
    plan.tile == Tile::wide ? by(WideTile{}) : by(SmallTile{});
  };
  if (plan.parts == 1) return multiply_to(nullptr);

  const MemoryTagScope tag(MemoryTag::workspace);
  const Out parts(Tensor::empty({plan.parts, g.weight_numel()}, {.device = grad_w.device()}));
  multiply_to(parts.data<float>());
  launch_add_parts_to<T>(grad_w, parts, stream);
}

}  // namespace

void backward_weight_by(const WeightPlan& plan, const ConvGeometry& g, const Tensor& x, const Tensor& grad_y,
                        const Tensor& mask, const Out& grad_w) {
  require_no_obstacle("conv2d_backward_weight", obstacle, PassKind::backward_weight, g,
                      operands_of(grad_w.dtype(), x, grad_y, grad_w));
  const Tensor gradient = masked_gradient(grad_y, mask);
  dispatch_numbers(grad_w.dtype(), "conv2d_backward_weight",
                   [&]<typename Numbers>(Numbers) { run<Numbers>(g, plan, x, gradient, grad_w); });
}

void backward_weight(const ConvGeometry& g, const Tensor& x, const Tensor& grad_y, const Tensor& mask,
                     const Out& grad_w) {
  backward_weight_by(plan_weights(g.k, g.r * g.s * g.c, g.n * g.p * g.q, kStepBytes / size_of(grad_w.dtype())), g, x,
                     grad_y, mask, grad_w);
}

}  // namespace tandem::kernels::cuda::implicit_gemm

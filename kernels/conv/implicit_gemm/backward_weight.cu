// The weights' gradient on tensor cores: the gradient of y times patches of x, summed up over all output pixels; where
// there are few tiles, in parts of a number of pixels that depends on the sizes alone, which later blocks of the launch
// add in order.
#include "tandem/core/memory.h"
#include "tandem/kernels/conv/implicit_gemm/implicit_gemm.h"
#include "tandem/kernels/conv/implicit_gemm/product.cuh"
#include "tandem/kernels/conv/implicit_gemm/weight_product.cuh"
#include "tandem/kernels/device/phases.cuh"
#include "tandem/kernels/gemm/add_parts.cuh"

namespace tandem::kernels::cuda::implicit_gemm {
namespace {

/// The products of all parts, `tiles` blocks for each, and behind them blocks that add these.
template <typename Numbers, typename Shape, typename A, typename B>
__global__ void __launch_bounds__(Shape::kThreads, Shape::kBlocksAtOnce)
    weights_in_parts(A a, B b, WeightResult<typename Numbers::Element> result, ProductCut cut, unsigned tiles,
                     device::Phases phases, PartsOfElements<typename Numbers::Element> parts) {
  TANDEM_DYNAMIC_SHARED(typename Numbers::Element, shared);
  const unsigned turn = phases.begin(), products = tiles * static_cast<unsigned>(parts.count);
  if (turn < products) {
    const unsigned part = turn / tiles;
    multiply_tile<Numbers, Shape>(a, b, result.of_part(part), cut, turn % tiles, part, shared);
    return phases.finish();
  }
  phases.await_last(products, gridDim.x - products);
  parts.add(turn - products, gridDim.x - products);
}

template <typename Numbers>
void run(const ConvGeometry& g, const WeightPlan& plan, const Tensor& x, const Tensor& grad_y, const Out& grad_w) {
  using T = typename Numbers::Element;
  const ProductSize size{.rows = g.k,
                         .columns = g.r * g.s * g.c,
                         .depth = g.n * g.p * g.q,
                         .parts = plan.parts,
                         .part_steps = plan.part_steps};
  const cudaStream_t stream = tandem::cuda::current_stream(grad_w.device());
  const auto with_shape = [&](const auto& visit) { plan.tile == Tile::wide ? visit(WideTile{}) : visit(SmallTile{}); };
  if (plan.parts == 1) {
    const WeightProduct<T> product(g, x, grad_y, grad_w, nullptr);
    return with_shape([&]<typename Shape>(Shape) {
      launch_product<Numbers, Shape>(size, product.gradient, product.patches, product.result, stream);
    });
  }

  const MemoryTagScope tag(MemoryTag::workspace);
  const Out parts(Tensor::empty({plan.parts, g.weight_numel()}, {.device = grad_w.device()}));
  const WeightProduct<T> product(g, x, grad_y, grad_w, parts.data<float>());
  const PartsOfElements<T> added(grad_w, parts);
  with_shape([&]<typename Shape>(Shape) {
    const unsigned tiles = size.tiles<Shape>();
    const unsigned products = tiles * static_cast<unsigned>(plan.parts);
    launch(weights_in_parts<Numbers, Shape, DenseOperand<T, false>, PatchColumns<T>>,
           {products + added.blocks(Shape::kThreads), Shape::kThreads, Shape::kSharedBytes}, stream, product.gradient,
           product.patches, product.result, size.cut<Numbers, Shape>(), tiles, device::Phases(stream), added);
  });
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

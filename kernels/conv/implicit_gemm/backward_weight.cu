// The weights' gradient on tensor cores: the gradient of y times patches of x, summed up over all output pixels; where
// there are few tiles, in parts of a number of pixels that depends on the sizes alone, which are then added in order.
#include "core/memory.h"
#include "kernels/conv/cudnn/library_passes.h"
#include "kernels/conv/implementations.h"
#include "kernels/conv/implicit_gemm/dense_operand.cuh"
#include "kernels/conv/implicit_gemm/patch_columns.cuh"
#include "kernels/conv/implicit_gemm/product.cuh"
#include "kernels/gemm/product.cuh"

namespace tandem::kernels::cuda::implicit_gemm {
namespace {

/// Sums as they are to `parts`, one matrix per blockIdx.y, or if that is null rounded to grad_w.
template <typename T>
struct WeightResult {
  static constexpr bool kSumsColumns = false;

  T* grad_w;
  int rows, columns;
  float* parts;

  __device__ device::Vector<float, 2> addend(int) const { return {}; }
  __device__ float finished(float sum) const { return sum; }

  __device__ bool store(int row, int column, const device::Vector<T, kPiece<T>>& values) const {
    if (row >= rows || column >= columns) return false;
    device::store_vector(grad_w + row * columns + column, values);
    return true;
  }

  template <typename Shape>
  __device__ void take(const Sums<Shape>& sums, const WarpPlace<Shape>& at, int first_row, int first_column,
                       T* shared) const {
    if (parts == nullptr) return store_tile(*this, sums, at, first_row, first_column, shared);
    float* const part = parts + std::int64_t{blockIdx.y} * rows * columns;
#pragma unroll
    for (int i = 0; i < Sums<Shape>::kDown * 2; ++i)
#pragma unroll
      for (int j = 0; j < Sums<Shape>::kAcross; ++j) {
        const int row = first_row + at.row + i * 8 + device::sum_row(at.lane);
        const int column = first_column + at.column + j * 8 + device::sum_column(at.lane);
        const float* const pair = sums.of[i / 2][j] + i % 2 * 2;
        if (row < rows && column < columns)
          device::store_vector(part + row * columns + column, device::Vector<float, 2>{pair[0], pair[1]});
      }
  }
};

template <typename Numbers>
void run(const ConvGeometry& g, const WeightPlan& plan, const Tensor& x, const Tensor& grad_y, const Tensor& grad_w) {
  using T = typename Numbers::Element;
  const auto int32 = [](std::int64_t value) { return static_cast<int>(value); };
  const ProductSize size{.rows = g.k,
                         .columns = g.r * g.s * g.c,
                         .depth = g.n * g.p * g.q,
                         .parts = plan.parts,
                         .part_steps = plan.part_steps};
  const DenseOperand<T, false> gradient{grad_y.data<T>(), int32(g.k), int32(size.depth)};
  const PatchColumns<T> patches(x.data<T>(), patches_down(g), patches_across(g), g.c, g.n);
  const cudaStream_t stream = tandem::cuda::current_stream(grad_w);
  const auto multiply_to = [&](float* parts) {
    const WeightResult<T> result{grad_w.data<T>(), int32(g.k), int32(size.columns), parts};
    if (plan.tile == Tile::wide) {
      launch_product<Numbers, WideTile>(size, gradient, patches, result, stream);
    } else {
      launch_product<Numbers, SmallTile>(size, gradient, patches, result, stream);
    }
  };
  if (plan.parts == 1) return multiply_to(nullptr);

  const MemoryTagScope tag(MemoryTag::workspace);
  const std::int64_t numel = g.weight_numel();
  const Tensor parts = Tensor::empty({plan.parts, numel}, {.device = grad_w.device()});
  multiply_to(parts.data<float>());
  const MatrixResult<T> sum{.data = grad_w.data<T>(), .rows = 1, .columns = numel, .row_stride = numel};
  launch(add_parts<MatrixResult<T>>, {device::blocks_for(numel, device::kThreadsPerBlock), device::kThreadsPerBlock},
         stream, parts.data<float>(), plan.parts, sum);
}

}  // namespace

void backward_weight_by(const WeightPlan& plan, const ConvGeometry& g, const Tensor& x, const Tensor& grad_y,
                        const Tensor& mask, const Tensor& grad_w) {
  require_no_obstacle("conv2d_backward_weight", g, grad_w.dtype(), {x, grad_y, grad_w});
  const Tensor gradient = masked_gradient(grad_y, mask);
  dispatch_numbers(grad_w.dtype(), "conv2d_backward_weight",
                   [&]<typename Numbers>(Numbers) { run<Numbers>(g, plan, x, gradient, grad_w); });
}

void backward_weight(const ConvGeometry& g, const Tensor& x, const Tensor& grad_y, const Tensor& mask,
                     const Tensor& grad_w) {
  backward_weight_by(plan_weights(g.k, g.r * g.s * g.c, g.n * g.p * g.q, kStepBytes / size_of(grad_w.dtype())), g, x,
                     grad_y, mask, grad_w);
}

}  // namespace tandem::kernels::cuda::implicit_gemm

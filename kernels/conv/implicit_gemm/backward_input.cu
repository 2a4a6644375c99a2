// The input's gradient on tensor cores: patches of the gradient of y times transposed weights, one product for each
// phase of the stride. On the way out it may pass through the ReLU of the layer below, and leave that layer's bias
// gradient.
#include "tandem/core/memory.h"
#include "tandem/kernels/conv/implicit_gemm/implicit_gemm.h"
#include "tandem/kernels/conv/implicit_gemm/input_product.cuh"
#include "tandem/kernels/conv/implicit_gemm/product.cuh"
#include "tandem/kernels/gemm/column_sum.h"

namespace tandem::kernels::cuda::implicit_gemm {
namespace {

struct PhaseWork {
  tile::InputPhase phase;
  Tile tile;
  std::int64_t pixels, tile_rows;
};

std::vector<PhaseWork> phases_of(const ConvGeometry& g, std::optional<Tile> forced) {
  std::vector<PhaseWork> all;
  for (std::int64_t row = 0; row < std::min(g.stride_h, g.h); ++row) {
    for (std::int64_t column = 0; column < std::min(g.stride_w, g.w); ++column) {
      const tile::InputPhase phase(g, row, column);
      const std::int64_t pixels = phase.pixels(g.n);
      const Tile tile = forced.value_or(choose_tile(pixels, g.c));
      all.push_back({phase, tile, pixels, tiles_along(pixels, rows_of(tile))});
    }
  }
  return all;
}

template <typename Numbers>
void run(const ConvGeometry& g, std::optional<Tile> forced, const Tensor& grad_y, const Tensor& w,
         const LayerBelow& below, const Out& grad_x) {
  using T = typename Numbers::Element;
  const std::vector<PhaseWork> phases = phases_of(g, forced);
  const bool sums = below.grad_bias.defined();
  std::int64_t sum_rows = 0;
  for (const PhaseWork& work : phases) sum_rows += sums ? work.tile_rows : 0;
  const MemoryTagScope tag(MemoryTag::workspace);
  const Out column_sums(sums ? Tensor::empty({sum_rows, g.c}, {.device = grad_x.device()}) : Tensor());
  float* next_sums = data_or_null<float>(column_sums);
  for (const PhaseWork& work : phases) {
    const InputProduct<T> product(g, work.phase, grad_y, w, grad_x, data_or_null<std::uint8_t>(below.mask), next_sums);
    const ProductSize size{.rows = work.pixels, .columns = g.c, .depth = work.phase.taps() * g.k};
    with_tile(work.tile, [&]<typename Shape>(Shape) {
      launch_product<Numbers, Shape>(size, product.patches, product.weights, product.result,
                                     tandem::cuda::current_stream(grad_x.device()));
    });
    if (sums) next_sums += work.tile_rows * g.c;
  }
  if (sums) column_sum_of_parts(column_sums, below.grad_bias);
}

}  // namespace

void backward_input_by(std::optional<Tile> tile, const ConvGeometry& g, const Tensor& grad_y, const Tensor& mask,
                       const Tensor& w, const LayerBelow& below, const Out& grad_x) {
  require_no_obstacle("conv2d_backward_input", obstacle, PassKind::backward_input, g,
                      operands_of(grad_x.dtype(), grad_y, w, grad_x));
  const Tensor gradient = masked_gradient(grad_y, mask);
  dispatch_numbers(grad_x.dtype(), "conv2d_backward_input",
                   [&]<typename Numbers>(Numbers) { run<Numbers>(g, tile, gradient, w, below, grad_x); });
}

void backward_input(const ConvGeometry& g, const Tensor& grad_y, const Tensor& mask, const Tensor& w,
                    const Out& grad_x) {
  backward_input_by({}, g, grad_y, mask, w, {}, grad_x);
}

void backward_input_below(const ConvGeometry& g, const Tensor& grad_y, const Tensor& mask, const Tensor& w,
                          const LayerBelow& below, const Out& grad_x) {
  backward_input_by({}, g, grad_y, mask, w, below, grad_x);
}

}  // namespace tandem::kernels::cuda::implicit_gemm

// Winograd forward convolution, and the input gradient as a forward convolution by the flipped kernel.
#include "tandem/kernels/conv/sign_mask.h"
#include "tandem/kernels/conv/winograd/choice.h"
#include "tandem/kernels/conv/winograd/tile_transforms.h"
#include "tandem/kernels/conv/winograd/weight_transforms.h"
#include "tandem/kernels/conv/winograd/winograd.h"
#include "tandem/kernels/gemm/scratch.h"
#include "tandem/kernels/gemm/simd.h"
#include "tandem/kernels/gemm/tasks.h"

namespace tandem::kernels::winograd {
namespace {

/// M = V U for some tiles and one panel of outputs.
template <int kRows>
struct ProductTile {
  static void run(const TileBuffer& v, const float* a, const WeightBuffer& u, const float* b, float* c,
                  std::int64_t c_block) {
    tiling::multiply_tile<kRows, tiling::kPanelVectors>({.a = a,
                                                         .a_row = kLanes,
                                                         .a_k = 1,
                                                         .a_segment = v.block,
                                                         .segments = u.depth / kLanes,
                                                         .segment = kLanes,
                                                         .b = b,
                                                         .b_k = kPanel,
                                                         .b_vector = kLanes,
                                                         .c = c,
                                                         .c_row = kLanes,
                                                         .c_vector = c_block,
                                                         .accumulate = false});
  }
};
using ProductFunction = void (*)(const TileBuffer&, const float*, const WeightBuffer&, const float*, float*,
                                 std::int64_t);

/// For tiles [begin, end), the first of which is at place 0 of v and m.
template <int kOutputs>
void multiply(const Tiles<kOutputs>& tiles, std::int64_t begin, std::int64_t end, const TileBuffer& v,
              const WeightBuffer& layout, const float* u, const TileBuffer& m) {
  constexpr int kSize = Transforms<kOutputs>::kSize;
  for (int f = 0; f < kSize * kSize; ++f) {
    const auto needing = tiles.needing(f / kSize, f % kSize, begin, end);
    const std::int64_t place = (needing.begin - begin) * kLanes;
    for (std::int64_t panel = 0; panel < layout.panels; ++panel) {
      const float* b = u + f * layout.frequency + panel * layout.depth * kPanel;
      float* c = m.data + f * m.frequency + panel * tiling::kPanelVectors * m.block + place;
      tiling::for_each_row_tile(needing.count(), [&](std::int64_t first, std::int64_t rows) {
        const auto product = tiling::kKernelByRows<ProductFunction, ProductTile>[static_cast<std::size_t>(rows - 1)];
        product(v, v.data + f * v.frequency + place + first * kLanes, layout, b, c + first * kLanes, m.block);
      });
    }
  }
}

/// Runs the convolution `g` of x; kFlipped as in transform_weight.
template <int kOutputs, bool kFlipped, typename T>
void convolve(const ConvGeometry& g, const T* x, const std::uint8_t* x_mask, const float* w,
              const ConvEpilogue& epilogue, T* y) {
  constexpr std::int64_t kFrequencies = Transforms<kOutputs>::kSize * Transforms<kOutputs>::kSize;
  const Tiles<kOutputs> tiles(g);
  const WeightBuffer layout(g);
  const std::int64_t c_blocks = blocks_of(g.c), k_blocks = layout.panels * tiling::kPanelVectors;
  const std::int64_t per_block = tiles_per_block((c_blocks + k_blocks) * kLanes * kFrequencies);
  const std::int64_t blocks = (tiles.count() + per_block - 1) / per_block;
  const std::int64_t v_floats = TileBuffer::floats(c_blocks, per_block, kFrequencies);
  const std::int64_t m_floats = TileBuffer::floats(k_blocks, per_block, kFrequencies);

  const Scratch u(layout.frequency * kFrequencies);
  const ScratchOf<T> zeros(c_blocks * kLanes);
  std::fill_n(zeros.data(), c_blocks * kLanes, T{});
  const std::int64_t workers = workers_for(blocks);
  const Scratch buffers(workers * (v_floats + m_floats));

  for_each_task(layout.panels,
                [&](std::int64_t panel, std::int64_t) { transform_weight<kOutputs, kFlipped>(g, w, panel, u.data()); });
  for_each_task(blocks, workers, [&](std::int64_t block, std::int64_t worker) {
    float* own = buffers.data() + worker * (v_floats + m_floats);
    const TileBuffer v(own, c_blocks, per_block), m(own + v_floats, k_blocks, per_block);
    const std::int64_t begin = block * per_block, end = std::min(tiles.count(), begin + per_block);
    if (x_mask != nullptr)
      transform_input<kOutputs, true>(g, x, x_mask, zeros.data(), begin, end, v);
    else
      transform_input<kOutputs, false>(g, x, nullptr, zeros.data(), begin, end, v);
    multiply(tiles, begin, end, v, layout, u.data(), m);
    transform_output<kOutputs>(g, m, begin, end, epilogue, y);
  });
}

}  // namespace

template <typename T>
void forward(const ConvGeometry& g, const T* x, const float* w, const ConvEpilogue& epilogue, T* y) {
  ConvEpilogue fused = epilogue;
  if (!simd::rows_have_whole_bytes(g.k)) fused.mask = nullptr;
  if (prefers_large_tiles(g))
    convolve<4, false>(g, x, nullptr, w, fused, y);
  else
    convolve<2, false>(g, x, nullptr, w, fused, y);
  if (epilogue.mask != fused.mask) write_sign_mask(y, g.output_numel(), epilogue.mask);
}

template <typename T>
void backward_input(const ConvGeometry& g, MaskedGradient<T> grad_y, const float* w, T* grad_x) {
  const ConvGeometry as_forward = backward_input_as_forward(g);
  const DenseGradient<T> dense(grad_y, g, simd::rows_have_whole_bytes(g.k));
  if (prefers_large_tiles(as_forward))
    convolve<4, true>(as_forward, dense.gradient.data, dense.gradient.mask, w, {}, grad_x);
  else
    convolve<2, true>(as_forward, dense.gradient.data, dense.gradient.mask, w, {}, grad_x);
}

template void forward(const ConvGeometry&, const float*, const float*, const ConvEpilogue&, float*);
template void forward(const ConvGeometry&, const Half*, const float*, const ConvEpilogue&, Half*);
template void forward(const ConvGeometry&, const BFloat16*, const float*, const ConvEpilogue&, BFloat16*);
template void backward_input(const ConvGeometry&, MaskedGradient<float>, const float*, float*);
template void backward_input(const ConvGeometry&, MaskedGradient<Half>, const float*, Half*);
template void backward_input(const ConvGeometry&, MaskedGradient<BFloat16>, const float*, BFloat16*);

}  // namespace tandem::kernels::winograd

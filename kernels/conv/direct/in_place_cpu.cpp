// Sums of patch values times gradients: a tile has patch values as rows and output channels as columns.
#include "tandem/kernels/conv/direct/in_place.h"

#include "tandem/kernels/conv/direct/padded_rows.h"
#include "tandem/kernels/conv/direct/panels.h"
#include "tandem/kernels/conv/direct/patches.h"
#include "tandem/kernels/conv/sign_mask.h"
#include "tandem/kernels/gemm/scratch.h"
#include "tandem/kernels/gemm/tasks.h"
#include "tandem/kernels/gemm/tile.h"

#include <algorithm>

namespace tandem::kernels::direct {
namespace {

using simd::kLanes;

// Pixels that are added up at once, of one image and of several small ones: more are faster where there are many
// channels, and round worse.
constexpr std::int64_t kBandPixels = 128;
constexpr std::int64_t kStackPixels = 256;
constexpr std::int64_t kPartBytes = 20 << 20;  // all partial sums together
constexpr std::int64_t kMostParts = 32;
constexpr std::int64_t kTasksPerThread = 3;  // at least, where ranges of outputs allow it

template <int kVectors>
struct Accumulate {
  template <int kRows>
  struct Tile {
    static void run(tiling::TileOperands operands) {
      operands.a_row = 1;
      operands.accumulate = true;
      tiling::multiply_tile<kRows, kVectors>(operands);
    }
  };
};
using TileFunction = void (*)(tiling::TileOperands);

/// The work of a task at a time: `count` output rows from row `first` on of each of `images` images.
struct Chunk {
  std::int64_t image, images, first, count;
};

/// How a batch is cut into chunks: rows of one image or, where images are small, several whole ones.
struct Chunks {
  std::int64_t images, band, bands, count;

  explicit Chunks(const ConvGeometry& g)
      : images(std::clamp<std::int64_t>(kStackPixels / (g.p * g.q), 1, g.n)),
        band(images > 1 ? g.p : std::clamp<std::int64_t>(kBandPixels / g.q, 1, g.p)),
        bands((g.p + band - 1) / band),
        count((g.n + images - 1) / images * bands) {}

  Chunk chunk(const ConvGeometry& g, std::int64_t number) const {
    const std::int64_t image = number / bands * images, first = number % bands * band;
    return {image, std::min(images, g.n - image), first, std::min(band, g.p - first)};
  }
};

/// The padded input rows of a chunk in such an order that those of one tap row lie at equal distances, for output rows
/// and within one for images: of every stride_h-th row first, row by row, and of each row those of all images.
class StackedRows {
 public:
  static std::int64_t floats(const ConvGeometry& g, const Chunks& chunks) {
    return rows_of_phase(g, chunks.band) * g.stride_h * chunks.images * PaddedRows::row_floats(g);
  }

  template <typename T>
  StackedRows(const ConvGeometry& g, const T* x, const Chunk& chunk, float* memory)
      : g_(g), images_(chunk.images), rows_(rows_of_phase(g, chunk.count)), memory_(memory) {
    for (std::int64_t row = 0; row < PaddedRows::rows_of(g, chunk.count); ++row)
      for (std::int64_t i = 0; i < images_; ++i)
        PaddedRows::fill(g, x, chunk.image + i, chunk.first * g.stride_h - g.pad_h + row,
                         memory + place(row) + i * step());
  }

  /// What tap row r reads for the first output row of the first image.
  const float* row(std::int64_t r) const { return memory_ + place(r * g_.dilation_h); }
  std::int64_t step() const { return PaddedRows::row_floats(g_); }

 private:
  static std::int64_t rows_of_phase(const ConvGeometry& g, std::int64_t count) {
    return (PaddedRows::rows_of(g, count) + g.stride_h - 1) / g.stride_h;
  }
  std::int64_t place(std::int64_t row) const {
    return (row % g_.stride_h * rows_ + row / g_.stride_h) * images_ * step();
  }

  const ConvGeometry& g_;
  std::int64_t images_, rows_;
  float* memory_;
};

/// The gradient of a chunk in the order of StackedRows: where it lies if that is its order, else in `memory`.
template <typename T>
const float* stacked_gradient(const ConvGeometry& g, MaskedGradient<T> grad_y, const Chunk& chunk, float* memory) {
  const std::int64_t row_floats = g.q * g.k;
  const auto element = [&](std::int64_t image, std::int64_t row) {
    return ((chunk.image + image) * g.p + row) * row_floats;
  };
  if (chunk.images == 1) return masked_floats(grad_y.from(element(0, chunk.first)), chunk.count * row_floats, memory);
  for (std::int64_t row = 0; row < chunk.count; ++row)
    for (std::int64_t i = 0; i < chunk.images; ++i) {
      float* const to = memory + (row * chunk.images + i) * row_floats;
      const float* const from = masked_floats(grad_y.from(element(i, chunk.first + row)), row_floats, to);
      if (from != to) std::copy_n(from, row_floats, to);
    }
  return memory;
}

/// sums[i][k] += patch value i of each pixel times its gradient of output channel k, over `segments` rows of pixels,
/// for k in [begin, end).
void accumulate(const ConvGeometry& g, const StackedRows& rows, std::int64_t segments, const float* gradient,
                std::int64_t begin, std::int64_t end, float* sums) {
  const std::int64_t run = g.s * g.c;
  for (std::int64_t r = 0; r < g.r; ++r)
    for (std::int64_t column = begin; column < end; column += 2 * kLanes)
      tiling::for_each_row_tile(run, [&](std::int64_t first, std::int64_t height) {
        const auto at = static_cast<std::size_t>(height - 1);
        const TileFunction tile = end - column > kLanes ? tiling::kKernelByRows<TileFunction, Accumulate<2>::Tile>[at]
                                                        : tiling::kKernelByRows<TileFunction, Accumulate<1>::Tile>[at];
        tile({.a = rows.row(r) + first,
              .a_row = 1,
              .a_k = g.stride_w * g.c,
              .a_segment = rows.step(),
              .segments = segments,
              .segment = g.q,
              .b = gradient + column,
              .b_k = g.k,
              .b_vector = kLanes,
              .c = sums + (r * run + first) * g.k + column,
              .c_row = g.k,
              .c_vector = kLanes,
              .accumulate = true});
      });
}

void accumulate_bias(const float* gradient, std::int64_t pixels, std::int64_t k, std::int64_t begin, std::int64_t end,
                     float* sums) {
  for (std::int64_t channel = begin; channel < end; channel += kLanes) {
    simd::Vec sum = simd::load(sums + channel);
    for (std::int64_t i = 0; i < pixels; ++i) sum += simd::load(gradient + i * k + channel);
    simd::store(sums + channel, sum);
  }
}

}  // namespace

bool reads_patches_in_place(const ConvGeometry& g) {
  return PaddedRows::supports(g) && g.r * g.s > 1 && simd::rows_have_whole_bytes(g.k);
}

template <typename T>
void in_place_backward_weight(const ConvGeometry& g, const T* x, MaskedGradient<T> grad_y, float* grad_w,
                              float* grad_bias) {
  const std::int64_t size = patch_size(g), part_floats = (size + 1) * g.k;  // weights, then bias
  const Chunks chunks(g);
  // The bits depend on the parts, and these on the sizes alone.
  const std::int64_t parts = std::min(
      chunks.count, std::clamp<std::int64_t>(kPartBytes / (part_floats * std::int64_t{sizeof(float)}), 1, kMostParts));
  const std::int64_t threads = tandem::detail::in_parallel() ? 1 : num_threads(), panels = panels_of(g.k);
  const std::int64_t ranges = threads == 1 ? 1 : std::min(panels, (kTasksPerThread * threads + parts - 1) / parts);
  const std::int64_t row_floats = StackedRows::floats(g, chunks);
  const std::int64_t own_floats = row_floats + chunks.images * chunks.band * g.q * g.k;
  const Scratch sums(parts * part_floats);
  const std::int64_t workers = workers_for(parts * ranges);
  const Scratch buffers(workers * own_floats);
  for_each_task(parts * ranges, workers, [&](std::int64_t task, std::int64_t worker) {
    const std::int64_t part = task / ranges, range = task % ranges;
    const std::int64_t begin = panels * range / ranges * kPanel;
    const std::int64_t end = std::min(g.k, panels * (range + 1) / ranges * kPanel);
    float* const memory = buffers.data() + worker * own_floats;
    float* const masked = memory + row_floats;
    float* const weight_sums = sums.data() + part * part_floats;
    for (std::int64_t i = 0; i <= size; ++i)
      std::fill(weight_sums + i * g.k + begin, weight_sums + i * g.k + end, 0.0f);
    for (std::int64_t at = chunks.count * part / parts; at < chunks.count * (part + 1) / parts; ++at) {
      const Chunk chunk = chunks.chunk(g, at);
      const std::int64_t segments = chunk.images * chunk.count;
      const float* const gradient = stacked_gradient(g, grad_y, chunk, masked);
      accumulate(g, StackedRows(g, x, chunk, memory), segments, gradient, begin, end, weight_sums);
      accumulate_bias(gradient, segments * g.q, g.k, begin, end, weight_sums + size * g.k);
    }
  });

  const auto total = [&](std::int64_t i) {
    simd::Vec sum{};
    for (std::int64_t part = 0; part < parts; ++part) sum += simd::load(sums.data() + part * part_floats + i);
    return sum;
  };
  for_each_task((size + kLanes - 1) / kLanes, [&](std::int64_t task, std::int64_t) {
    const std::int64_t first = task * kLanes, count = std::min<std::int64_t>(kLanes, size - first);
    for (std::int64_t k = 0; k < g.k; k += kLanes) {
      alignas(64) float block[kLanes][kLanes];
      for (std::int64_t i = 0; i < count; ++i) simd::store(block[i], total((first + i) * g.k + k));
      for (std::int64_t j = 0; j < kLanes; ++j)
        for (std::int64_t i = 0; i < count; ++i) grad_w[(k + j) * size + first + i] = block[i][j];
    }
  });
  for (std::int64_t k = 0; grad_bias != nullptr && k < g.k; k += kLanes)
    simd::store(grad_bias + k, total(size * g.k + k));
}

template void in_place_backward_weight(const ConvGeometry&, const float*, MaskedGradient<float>, float*, float*);
template void in_place_backward_weight(const ConvGeometry&, const Half*, MaskedGradient<Half>, float*, float*);
template void in_place_backward_weight(const ConvGeometry&, const BFloat16*, MaskedGradient<BFloat16>, float*, float*);

}  // namespace tandem::kernels::direct

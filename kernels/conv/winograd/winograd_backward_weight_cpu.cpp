// Winograd weight gradient: dW = G^T [sum over tiles of (A dY A^T) * (B^T d B)] G.
#include "tandem/kernels/conv/sign_mask.h"
#include "tandem/kernels/conv/tuning/tuner.h"
#include "tandem/kernels/conv/winograd/choice.h"
#include "tandem/kernels/conv/winograd/tile_transforms.h"
#include "tandem/kernels/conv/winograd/weight_transforms.h"
#include "tandem/kernels/conv/winograd/winograd.h"
#include "tandem/kernels/gemm/scratch.h"
#include "tandem/kernels/gemm/simd.h"
#include "tandem/kernels/gemm/tasks.h"

#include <algorithm>
#include <vector>

namespace tandem::kernels::winograd {
namespace {

// A tile of dU: kRows outputs (a divisor of kLanes) by up to kVectors blocks of inputs.
constexpr int kRows = kLanes > 4 ? kLanes / 2 : 4;
constexpr int kVectors = kLanes > 4 ? 2 : 4;
constexpr std::int64_t kBiasTiles = 8;         // of a sum in float
constexpr std::int64_t kOutputsPerTask = 64;   // of the final transform
constexpr std::int64_t kPartBytes = 20 << 20;  // of all sums together
constexpr std::int64_t kMostParts = 8;
constexpr std::int64_t kTasksPerThread = 3;       // at least, where ranges of outputs allow it
constexpr std::int64_t kLeastRange = 2 * kLanes;  // outputs

/// dU += W^T V over `tiles` tiles, for one frequency and kCount blocks of input channels.
template <int kCount>
void multiply_outputs(const float* w, std::int64_t w_block, const float* v, std::int64_t v_block, std::int64_t tiles,
                      std::int64_t k_blocks, float* du, std::int64_t du_block, bool accumulate) {
  for (std::int64_t k = 0; k < k_blocks * kLanes; k += kRows)
    tiling::multiply_tile<kRows, kCount>({.a = w + k / kLanes * w_block + k % kLanes,
                                          .a_row = 1,
                                          .a_k = kLanes,
                                          .a_segment = 0,
                                          .segments = 1,
                                          .segment = tiles,
                                          .b = v,
                                          .b_k = kLanes,
                                          .b_vector = v_block,
                                          .c = du + k * kLanes,
                                          .c_row = kLanes,
                                          .c_vector = du_block,
                                          .accumulate = accumulate});
}

/// How the sums over all tiles are cut into tasks, none of which waits for another. The tiles make parts with sums of
/// their own: how many depends on the sizes alone, as the bits of the result depend on it. Where these are too few for
/// threads that other programs may interrupt, the outputs make ranges, each of which transforms the input anew.
struct Cut {
  std::int64_t parts, ranges;

  Cut(const ConvGeometry& g, std::int64_t tiles, std::int64_t sums_bytes) {
    parts = std::clamp<std::int64_t>(kPartBytes / sums_bytes, 1, kMostParts);
    parts = std::min(parts, (tiles + kLeastTiles - 1) / kLeastTiles);
    const std::int64_t threads = tandem::detail::in_parallel() ? 1 : num_threads();
    const std::int64_t most_ranges = (g.k + kLeastRange - 1) / kLeastRange;
    ranges = threads == 1 ? 1 : std::min(most_ranges, (kTasksPerThread * threads + parts - 1) / parts);
  }
};

template <int kOutputs, typename T>
class WeightGradient {
 public:
  WeightGradient(const ConvGeometry& g, const T* x, MaskedGradient<T> grad_y)
      : g_(g), x_(x), grad_y_(grad_y), zeros_(std::max(c_blocks_, blocks_of(g.k)) * kLanes) {
    std::fill_n(zeros_.data(), std::max(c_blocks_, blocks_of(g.k)) * kLanes, T{});
  }

  void run(float* grad_w, float* grad_bias) const {
    const std::int64_t k_filled = blocks_of(g_.k) * kLanes, tasks = cut_.parts * cut_.ranges;
    const Scratch du(cut_.parts * part_floats_);
    std::vector<double> bias(static_cast<std::size_t>(cut_.parts * k_filled), 0.0);
    const std::int64_t workers = workers_for(tasks);
    const Scratch buffers(workers * own_floats_);
    for_each_task(tasks, workers, [&](std::int64_t task, std::int64_t worker) {
      const std::int64_t part = task / cut_.ranges, range = task % cut_.ranges;
      sum_tiles(part, range, buffers.data() + worker * own_floats_, du.data() + part * part_floats_,
                bias.data() + part * k_filled);
    });
    const std::int64_t pieces = (g_.k + kOutputsPerTask - 1) / kOutputsPerTask;
    for_each_task(c_blocks_ * pieces, [&](std::int64_t task, std::int64_t) {
      const std::int64_t begin = task % pieces * kOutputsPerTask, end = std::min(g_.k, begin + kOutputsPerTask);
      transform_weight_gradient<kOutputs>(g_, du.data(), cut_.parts, part_floats_, task / pieces, begin, end, grad_w);
    });
    for (std::int64_t k = 0; grad_bias != nullptr && k < g_.k; ++k) {
      double sum = 0.0;
      for (std::int64_t part = 0; part < cut_.parts; ++part) sum += bias[static_cast<std::size_t>(part * k_filled + k)];
      grad_bias[k] = static_cast<float>(sum);
    }
  }

 private:
  static constexpr int kSize = Transforms<kOutputs>::kSize, kFrequencies = kSize * kSize;

  /// A part's sums for one range of outputs; `own` is the thread's memory.
  void sum_tiles(std::int64_t part, std::int64_t range, float* own, float* du, double* bias) const {
    const std::int64_t blocks = blocks_of(g_.k);
    const std::int64_t k_begin = blocks * range / cut_.ranges * kLanes;
    const std::int64_t k_end = std::min(g_.k, blocks * (range + 1) / cut_.ranges * kLanes);
    const std::int64_t begin = tiles_.count() * part / cut_.parts, end = tiles_.count() * (part + 1) / cut_.parts;
    const TileBuffer v(own, c_blocks_, per_block_);
    const TileBuffer wy(own + v.frequency * kFrequencies, range_blocks_, per_block_);
    float* const bias_sums = wy.data + wy.frequency * kFrequencies;
    for (std::int64_t first = begin; first < end; first += per_block_) {
      const std::int64_t last = std::min(end, first + per_block_);
      transform_input<kOutputs, false>(g_, x_, nullptr, zeros_.data(), first, last, v);
      for (std::int64_t tile = first; tile < last; tile += kBiasTiles) {
        const std::int64_t stop = std::min(last, tile + kBiasTiles);
        const auto transform =
            grad_y_.mask != nullptr ? transform_gradient<kOutputs, true, T> : transform_gradient<kOutputs, false, T>;
        std::fill_n(bias_sums, range_blocks_ * kLanes, 0.0f);
        transform(g_, grad_y_, zeros_.data(), tile, stop, k_begin, k_end, wy.from(tile - first), bias_sums);
        for (std::int64_t k = k_begin; k < k_end; ++k) bias[k] += static_cast<double>(bias_sums[k - k_begin]);
      }
      for (int f = 0; f < kFrequencies; ++f) {
        const auto needing = tiles_.needing(f / kSize, f % kSize, first, last);
        if (needing.count() == 0 && first > begin) continue;  // else the sums begin as zeros
        const std::int64_t place = (needing.begin - first) * kLanes;
        multiply(wy.data + f * wy.frequency + place, wy.block, v.data + f * v.frequency + place, v.block,
                 needing.count(), blocks_of(k_end - k_begin), du + f * layout_.frequency + k_begin * kLanes,
                 first > begin);
      }
    }
  }

  /// dU += W^T V over `tiles` tiles, for one frequency.
  void multiply(const float* w, std::int64_t w_block, const float* v, std::int64_t v_block, std::int64_t tiles,
                std::int64_t k_blocks, float* du, bool accumulate) const {
    std::int64_t block = 0;
    for (; block + kVectors <= c_blocks_; block += kVectors)
      multiply_outputs<kVectors>(w, w_block, v + block * v_block, v_block, tiles, k_blocks, du + block * layout_.block,
                                 layout_.block, accumulate);
    for (; block < c_blocks_; ++block)
      multiply_outputs<1>(w, w_block, v + block * v_block, v_block, tiles, k_blocks, du + block * layout_.block,
                          layout_.block, accumulate);
  }

  const ConvGeometry& g_;
  const T* x_;
  const MaskedGradient<T> grad_y_;
  const Tiles<kOutputs> tiles_{g_};
  const WeightGradientBuffer layout_{g_};
  const std::int64_t c_blocks_ = blocks_of(g_.c);
  const std::int64_t part_floats_ = layout_.frequency * kFrequencies;
  const Cut cut_{g_, tiles_.count(), part_floats_* std::int64_t{sizeof(float)}};
  const std::int64_t range_blocks_ = (blocks_of(g_.k) + cut_.ranges - 1) / cut_.ranges;
  const std::int64_t per_block_ = tiles_per_block((c_blocks_ + blocks_of(g_.k)) * kLanes * kFrequencies);
  const std::int64_t own_floats_ = TileBuffer::floats(c_blocks_, per_block_, kFrequencies) +
                                   TileBuffer::floats(range_blocks_, per_block_, kFrequencies) + range_blocks_ * kLanes;
  const ScratchOf<T> zeros_;
};

}  // namespace

template <typename T>
void backward_weight(const ConvGeometry& g, const T* x, MaskedGradient<T> grad_y, float* grad_w, float* grad_bias) {
  const DenseGradient<T> dense(grad_y, g, simd::rows_have_whole_bytes(g.k));
  if (prefers_large_tiles(g))
    WeightGradient<4, T>(g, x, dense.gradient).run(grad_w, grad_bias);
  else
    WeightGradient<2, T>(g, x, dense.gradient).run(grad_w, grad_bias);
}

template void backward_weight(const ConvGeometry&, const float*, MaskedGradient<float>, float*, float*);
template void backward_weight(const ConvGeometry&, const Half*, MaskedGradient<Half>, float*, float*);
template void backward_weight(const ConvGeometry&, const BFloat16*, MaskedGradient<BFloat16>, float*, float*);

}  // namespace tandem::kernels::winograd

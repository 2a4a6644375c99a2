// The gradients of weights and bias for few channels, on tensor cores and in one reading of the gradient of y: that of
// the bias is one more column, of ones. Masks are applied on the way in.
#include "tandem/core/cuda/current_stream.h"
#include "tandem/core/cuda/launch.h"
#include "tandem/core/memory.h"
#include "tandem/kernels/conv/few_channels/few_channels.h"
#include "tandem/kernels/conv/few_channels/halo.cuh"
#include "tandem/kernels/conv/few_channels/plan.h"
#include "tandem/kernels/conv/implicit_gemm/product.cuh"
#include "tandem/kernels/device/atoms.h"
#include "tandem/kernels/device/fragments.h"
#include "tandem/kernels/device/vector.h"
#include "tandem/kernels/gemm/product.cuh"

namespace tandem::kernels::cuda::few_channels {
namespace {

/// 16-bit numbers in 16 bytes.
constexpr int kVectorSize = 8;

/// Of the gradient of weights: rows are output channels, columns taps and input channels. The warps of a block share
/// the pixels, each has all rows and columns.
template <int kRows_, int kColumns_>
struct WeightTile {
  static constexpr int kRows = kRows_, kColumns = kColumns_;
  static constexpr int kMmaRows = kRows / 16, kMmaColumns = kColumns / 8;
  static constexpr int kWarpPixels = kTilePixels / kWarps;
  using Layout = implicit_gemm::TileLayout<Half, kRows, false>;  // of the gradient of y: lines are pixels
  static constexpr int kVectors = kRows / kVectorSize;
  static constexpr int kGradientElements = kTilePixels * kRows;
  static constexpr int kSumPitch =
      kColumns + 8;  // four rows of an instruction's accumulators are in four quarters of the banks
  static_assert(kRows * kSumPitch * 4 <= kGradientElements * 2, "accumulators go where the gradient was");
};

template <typename Tile>
struct WeightAccumulators {
  float value[Tile::kMmaRows][Tile::kMmaColumns][4] = {};
};

template <typename T>
struct MaskedRows {
  const T* data;             // [pixels, channels]
  const std::uint8_t* mask;  // or null
  int channels;

  __device__ device::Vector<T, kVectorSize> load(int pixel, int channel) const {
    const int at = pixel * channels + channel;
    auto values = device::load_vector<kVectorSize>(data + at);
    if (mask == nullptr) return values;
    const unsigned open = mask[at / kVectorSize];
#pragma unroll
    for (int k = 0; k < kVectorSize; ++k) values[k] = (open >> k & 1u) != 0 ? values[k] : T{};
    return values;
  }
};

/// A tile's rows of the gradient of y into shared memory, zeros past its end.
template <typename Tile, typename T>
__device__ void load_gradient(const MaskedRows<T>& gradient, int first_pixel, int pixels, int first_channel, T* tile) {
  constexpr int kLinesAtOnce = kThreads / Tile::kVectors;
  const int vector = static_cast<int>(threadIdx.x) % Tile::kVectors;
  const int channel = first_channel + vector * kVectorSize;
#pragma unroll
  for (int turn = 0; turn < kTilePixels / kLinesAtOnce; ++turn) {
    const int line = static_cast<int>(threadIdx.x) / Tile::kVectors + turn * kLinesAtOnce;
    device::Vector<T, kVectorSize> values = {};
    if (line < pixels && channel < gradient.channels) values = gradient.load(first_pixel + line, channel);
    device::store_vector(tile + Tile::Layout::place(line, vector), values);
  }
}

/// Adds up a warp's pixels of one tile. `patches` are where those of the tile's pixels begin, `places` what a lane's
/// columns add to that.
template <typename Tile, typename T>
__device__ void multiply_tile(const T* gradient, const T* halo, const int* patches, int pixels,
                              const int (&places)[Tile::kMmaColumns], WeightAccumulators<Tile>& accumulators) {
  const int lane = static_cast<int>(threadIdx.x) % device::kWarpThreads;
  const int begin = static_cast<int>(threadIdx.x) / device::kWarpThreads * Tile::kWarpPixels;
#pragma unroll
  for (int depth = begin; depth < begin + Tile::kWarpPixels; depth += kInstructionDepth) {
    std::uint32_t left[Tile::kMmaRows][4];
#pragma unroll
    for (int i = 0; i < Tile::kMmaRows; ++i)
      device::ldmatrix_x4_trans(left[i], gradient + Tile::Layout::left(lane, i * 16, depth));
    int patch[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int pixel = depth + i / 2 * 8 + device::sum_column(lane) + i % 2;
      patch[i] = pixel < pixels ? patches[pixel] : kNowhere;
    }
#pragma unroll
    for (int j = 0; j < Tile::kMmaColumns; ++j) {
      const auto element = [&](int i) { return patch_bits(halo, patch[i], places[j]); };
      const std::uint32_t right[2] = {pair_of(element(0), element(1)), pair_of(element(2), element(3))};
#pragma unroll
      for (int i = 0; i < Tile::kMmaRows; ++i)
        implicit_gemm::Halves<T>::multiply(accumulators.value[i][j], left[i], right);
    }
  }
}

/// The sums of all warps, added in order, as a matrix in shared memory.
template <typename Tile>
__device__ void add_warps(const WeightAccumulators<Tile>& accumulators, float* matrix) {
  const int lane = static_cast<int>(threadIdx.x) % device::kWarpThreads;
  for (int warp = 0; warp < kWarps; ++warp) {
    if (static_cast<int>(threadIdx.x) / device::kWarpThreads == warp) {
#pragma unroll
      for (int i = 0; i < Tile::kMmaRows * 2; ++i)
#pragma unroll
        for (int j = 0; j < Tile::kMmaColumns; ++j) {
          float* const at =
              matrix + (i * 8 + device::sum_row(lane)) * Tile::kSumPitch + j * 8 + device::sum_column(lane);
          device::Vector<float, 2> pair{accumulators.value[i / 2][j][i % 2 * 2],
                                        accumulators.value[i / 2][j][i % 2 * 2 + 1]};
          if (warp > 0) {
            const auto before = device::load_vector<2>(static_cast<const float*>(at));
            pair[0] += before[0];
            pair[1] += before[1];
          }
          device::store_vector(at, pair);
        }
    }
    __syncthreads();
  }
}

/// blockIdx: x a part of `part_tiles` tiles, y a tile of output channels, z one of taps and channels. Each part is a
/// matrix of output channels by depth and, last, bias.
template <typename T, typename Tile>
__global__ void __launch_bounds__(kThreads, 2)
    few_channels_backward_weight(const T* images, MaskedRows<T> rows, Band band, int part_tiles, float* parts) {
  TANDEM_SHARED(int, patches, [kTilePixels]);
  TANDEM_DYNAMIC_SHARED(T, gradient);
  T* const halo = gradient + Tile::kGradientElements;
  const int thread = static_cast<int>(threadIdx.x);
  const int first_channel = static_cast<int>(blockIdx.y) * Tile::kRows;
  const int first_depth = static_cast<int>(blockIdx.z) * Tile::kColumns;
  patches[thread] = thread < band.lines * band.columns ? band.patch(thread) : kNowhere;
  int places[Tile::kMmaColumns];
#pragma unroll
  for (int j = 0; j < Tile::kMmaColumns; ++j) {
    const int depth = first_depth + j * 8 + device::sum_row(thread % device::kWarpThreads);
    places[j] = depth < band.depth ? band.within_patch(depth) : depth == band.depth ? kOne : kNowhere;
  }

  WeightAccumulators<Tile> accumulators;
  const int begin = static_cast<int>(blockIdx.x) * part_tiles;
  const int end = begin + part_tiles < band.tiles ? begin + part_tiles : band.tiles;
  for (int tile = begin; tile < end; ++tile) {
    const TilePlace place = band.place(tile);
    load_halo(images, band, place, halo);
    load_gradient<Tile>(rows, band.first_pixel(place), place.pixels, first_channel, gradient);
    __syncthreads();
    multiply_tile<Tile>(gradient, halo, patches, place.pixels, places, accumulators);
    __syncthreads();
  }

  float* const matrix = reinterpret_cast<float*>(gradient);
  add_warps<Tile>(accumulators, matrix);
  const int columns = band.depth + 1;
  for (int i = thread; i < Tile::kRows * Tile::kColumns; i += kThreads) {
    const int channel = first_channel + i / Tile::kColumns, depth = first_depth + i % Tile::kColumns;
    if (channel < rows.channels && depth < columns)
      parts[(std::int64_t{blockIdx.x} * rows.channels + channel) * columns + depth] =
          matrix[i / Tile::kColumns * Tile::kSumPitch + i % Tile::kColumns];
  }
}

/// Takes the added parts apart: weights, and bias where it is wanted.
template <typename T>
struct WeightAndBias {
  T* grad_w;
  T* grad_bias;
  std::int64_t rows, columns;

  template <int kCount>
  __device__ void store(std::int64_t row, std::int64_t column, const device::Vector<float, kCount>& sum) const {
    static_assert(kCount == 1);
    if (column < columns - 1) {
      grad_w[row * (columns - 1) + column] = device::from_float<T>(sum[0]);
    } else if (grad_bias != nullptr) {
      grad_bias[row] = device::from_float<T>(sum[0]);
    }
  }
};

template <typename T>
struct Operands {
  const T* images;
  MaskedRows<T> gradient;
};

template <typename T, int kRows, int kColumns>
void sum_parts(const Band& band, const Operands<T>& from, int part_tiles, int part_count, float* parts,
               cudaStream_t stream) {
  using Tile = WeightTile<kRows, kColumns>;
  const dim3 grid(static_cast<unsigned>(part_count),
                  static_cast<unsigned>((from.gradient.channels + kRows - 1) / kRows),
                  static_cast<unsigned>((band.depth + kColumns) / kColumns));
  const auto bytes = static_cast<std::size_t>(Tile::kGradientElements + band.halo_elements()) * sizeof(T);
  launch(few_channels_backward_weight<T, Tile>, {grid, kThreads, bytes}, stream, from.images, from.gradient, band,
         part_tiles, parts);
}

template <typename T, int kRows>
void sum_parts(const Band& band, const Operands<T>& from, int part_tiles, int part_count, float* parts,
               cudaStream_t stream) {
  const auto by = [&]<int kColumns>(std::integral_constant<int, kColumns>) {
    sum_parts<T, kRows, kColumns>(band, from, part_tiles, part_count, parts, stream);
  };
  if (band.depth < 16) return by(std::integral_constant<int, 16>{});
  if (band.depth < 32) return by(std::integral_constant<int, 32>{});
  by(std::integral_constant<int, 48>{});
}

template <typename T>
void run(const ConvGeometry& g, const Tensor& x, const Tensor& grad_y, const Tensor& mask, const Out& grad_w,
         const Out& grad_bias) {
  const Band band(g);
  const int part_tiles = weight_part_tiles(band.tiles), part_count = (band.tiles + part_tiles - 1) / part_tiles;
  const std::int64_t columns = band.depth + 1, numel = g.k * columns;
  const MemoryTagScope tag(MemoryTag::workspace);
  const Out parts(Tensor::empty({part_count, numel}, {.device = grad_w.device()}));
  const Operands<T> from{x.data<T>(), {grad_y.data<T>(), data_or_null<std::uint8_t>(mask), static_cast<int>(g.k)}};
  const cudaStream_t stream = tandem::cuda::current_stream(grad_w.device());
  if (g.k <= 32) {
    sum_parts<T, 32>(band, from, part_tiles, part_count, parts.data<float>(), stream);
  } else {
    sum_parts<T, 64>(band, from, part_tiles, part_count, parts.data<float>(), stream);
  }
  launch_add_parts(parts, WeightAndBias<T>{grad_w.data<T>(), data_or_null<T>(grad_bias), g.k, columns}, stream);
}

}  // namespace

void backward_weight_and_bias(const ConvGeometry& g, const Tensor& x, const Tensor& grad_y, const Tensor& mask,
                              const Out& grad_w, const Out& grad_bias) {
  require_no_obstacle("conv2d_backward_weight", obstacle, PassKind::backward_weight, g,
                      operands_of(grad_w.dtype(), x, grad_y, grad_w));
  implicit_gemm::dispatch_halves(grad_w.dtype(), "conv2d_backward_weight",
                                 [&]<typename T>(TypeTag<T>) { run<T>(g, x, grad_y, mask, grad_w, grad_bias); });
}

void backward_weight(const ConvGeometry& g, const Tensor& x, const Tensor& grad_y, const Tensor& mask,
                     const Out& grad_w) {
  backward_weight_and_bias(g, x, grad_y, mask, grad_w, {});
}

}  // namespace tandem::kernels::cuda::few_channels

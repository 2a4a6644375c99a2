// The forward pass of few channels on tensor cores: a warp's rows are output pixels, read from the halo, its columns
// output channels. The weights of a block's columns stay in shared memory for all of its tiles.
#include "tandem/kernels/conv/few_channels/few_channels.h"
#include "tandem/kernels/conv/few_channels/halo.cuh"
#include "tandem/kernels/conv/few_channels/plan.h"
#include "tandem/kernels/conv/implicit_gemm/forward.cuh"
#include "tandem/kernels/conv/implicit_gemm/product.cuh"
#include "tandem/kernels/device/atoms.h"
#include "tandem/kernels/device/fragments.h"
#include "tandem/kernels/device/vector.h"

namespace tandem::kernels::cuda::few_channels {
namespace {

using implicit_gemm::Accumulators;
using implicit_gemm::ForwardResult;
using implicit_gemm::TileShape;
using implicit_gemm::WarpPlace;

/// A warp has all columns, so that each element of a patch is read once.
template <int kColumns>
using Shape = TileShape<kTilePixels, kColumns, kTilePixels / kWarps, kColumns, 1>;

/// A line of weights is eight elements longer than it needs to be: 16-byte vectors of eight lines are in other banks.
__host__ __device__ constexpr int weight_pitch(int padded_depth) { return padded_depth + 8; }

/// Elements of shared memory: the tile of results, the weights, the places of depths (two elements each), the bias, the
/// halo.
template <int kColumns>
struct Parts {
  int weights, places, bias, halo, end;

  __host__ __device__ explicit Parts(const Band& band)
      : weights(Shape<kColumns>::kStageBytes / 2),
        places(weights + kColumns * weight_pitch(band.padded_depth)),
        bias(places + 2 * band.padded_depth),
        halo(bias + kColumns),
        end(halo + band.halo_elements()) {}
};

/// The weights of a block's columns, read as they lie; zeros where there are none.
template <typename T, int kColumns>
__device__ void load_weights(const T* weights, const Band& band, int first_channel, int channels, T* lines) {
  const int pitch = weight_pitch(band.padded_depth), padding = band.padded_depth - band.depth;
  const int there = (channels - first_channel) * band.depth;
  for (int i = static_cast<int>(threadIdx.x); i < kColumns * band.depth; i += kThreads) {
    unsigned depth = static_cast<unsigned>(i);
    const int line = static_cast<int>(band.by_depth.split(depth));
    lines[line * pitch + static_cast<int>(depth)] = i < there ? weights[first_channel * band.depth + i] : T{};
  }
  for (int i = static_cast<int>(threadIdx.x); i < kColumns * padding; i += kThreads)
    lines[i / padding * pitch + band.depth + i % padding] = T{};
}

/// A lane's rows of a warp's tile: row i * 8 + lane / 4 is the patch that begins at of[i].
template <int kColumns>
struct Patches {
  int of[Shape<kColumns>::kWarpRows / 8];

  __device__ Patches(const Band& band, const WarpPlace<Shape<kColumns>>& at) {
#pragma unroll
    for (int i = 0; i < Shape<kColumns>::kWarpRows / 8; ++i) {
      const int pixel = at.row + i * 8 + device::sum_row(at.lane);
      of[i] = pixel < band.lines * band.columns ? band.patch(pixel) : 0;
    }
  }
};

/// Adds up one tile whose halo is there.
template <typename T, int kColumns>
__device__ void multiply_tile(const T* halo, const T* weights, const int* places, int padded_depth,
                              const Patches<kColumns>& patches, const WarpPlace<Shape<kColumns>>& at,
                              Accumulators<Shape<kColumns>>& accumulators) {
  constexpr int kMmaRows = Accumulators<Shape<kColumns>>::kMmaRows,
                kMmaColumns = Accumulators<Shape<kColumns>>::kMmaColumns;
  const device::BlockRow weight_row = device::across_then_down(at.lane);
  for (int depth = 0; depth < padded_depth; depth += kInstructionDepth) {
    std::uint32_t right[kMmaColumns][2];
#pragma unroll
    for (int j = 0; j < kMmaColumns; j += 2) {
      std::uint32_t both[4];
      device::ldmatrix_x4(
          both, weights + (j * 8 + weight_row.line) * weight_pitch(padded_depth) + depth + weight_row.vector * 8);
      right[j][0] = both[0];
      right[j][1] = both[1];
      right[j + 1][0] = both[2];
      right[j + 1][1] = both[3];
    }
    const device::Vector<int, 2> near = device::load_vector<2>(places + depth + device::sum_column(at.lane));
    const device::Vector<int, 2> far = device::load_vector<2>(places + depth + 8 + device::sum_column(at.lane));
    const auto pair = [&](int patch, const device::Vector<int, 2>& place) {
      return pair_of(patch_bits(halo, patch, place[0]), patch_bits(halo, patch, place[1]));
    };
#pragma unroll
    for (int i = 0; i < kMmaRows; ++i) {
      const int upper = patches.of[2 * i], lower = patches.of[2 * i + 1];
      const std::uint32_t left[4] = {pair(upper, near), pair(lower, near), pair(upper, far), pair(lower, far)};
#pragma unroll
      for (int j = 0; j < kMmaColumns; ++j)
        implicit_gemm::Halves<T>::multiply(accumulators.value[i][j], left, right[j]);
    }
  }
}

/// blockIdx.x takes `block_tiles` neighbouring tiles, blockIdx.y a tile of output channels.
template <typename T, int kColumns>
__global__ void __launch_bounds__(kThreads)
    few_channels_forward(const T* images, const T* weights, Band band, ForwardResult<T> result, int block_tiles) {
  TANDEM_DYNAMIC_SHARED(T, shared);
  const Parts<kColumns> parts(band);
  T* const weight_lines = shared + parts.weights;
  int* const places = reinterpret_cast<int*>(shared + parts.places);
  T* const halo = shared + parts.halo;
  const WarpPlace<Shape<kColumns>> at;
  const int first_channel = static_cast<int>(blockIdx.y) * kColumns;
  load_weights<T, kColumns>(weights, band, first_channel, result.columns, weight_lines);
  for (int i = static_cast<int>(threadIdx.x); i < band.padded_depth; i += kThreads)
    places[i] = i < band.depth ? band.within_patch(i) : kNowhere;
  T* const bias = shared + parts.bias;
  const int column = first_channel + static_cast<int>(threadIdx.x);
  if (result.bias != nullptr && static_cast<int>(threadIdx.x) < kColumns && column < result.columns)
    bias[threadIdx.x] = result.bias[column];
  const Patches<kColumns> patches(band, at);

  const int begin = static_cast<int>(blockIdx.x) * block_tiles;
  const int end = begin + block_tiles < band.tiles ? begin + block_tiles : band.tiles;
  for (int tile = begin; tile < end; ++tile) {
    const TilePlace place = band.place(tile);
    load_halo(images, band, place, halo);  // the one before is used up: its results have passed a barrier since
    __syncthreads();
    Accumulators<Shape<kColumns>> accumulators;
    multiply_tile<T, kColumns>(halo, weight_lines, places, band.padded_depth, patches, at, accumulators);
    const int first_pixel = band.first_pixel(place);
    ForwardResult<T> of_tile = result;
    of_tile.rows = first_pixel + place.pixels;
    of_tile.bias = result.bias != nullptr ? bias - first_channel : nullptr;
    of_tile.write_tile(accumulators, at, first_pixel, first_channel, shared);
  }
}

template <typename T, int kColumns>
void run(const ConvGeometry& g, const Tensor& x, const Tensor& w, const Epilogue& epilogue, const Out& y) {
  const Band band(g);
  const ForwardResult<T> result{y.data<T>(),           static_cast<int>(g.n * g.p * g.q),
                                static_cast<int>(g.k), data_or_null<T>(epilogue.bias),
                                epilogue.relu,         data_or_null<std::uint8_t>(epilogue.mask)};
  const int block_tiles = forward_block_tiles(band.tiles);
  const dim3 grid(static_cast<unsigned>((band.tiles + block_tiles - 1) / block_tiles),
                  static_cast<unsigned>((g.k + kColumns - 1) / kColumns));
  const auto bytes = static_cast<std::size_t>(Parts<kColumns>(band).end) * sizeof(T);
  launch(few_channels_forward<T, kColumns>, {grid, kThreads, bytes}, tandem::cuda::current_stream(y.device()),
         x.data<T>(), w.data<T>(), band, result, block_tiles);
}

}  // namespace

void forward(const ConvGeometry& g, const Tensor& x, const Tensor& w, const Epilogue& epilogue, const Out& y) {
  require_no_obstacle("conv2d_forward", obstacle, PassKind::forward, g, operands_of(y.dtype(), x, w, epilogue.bias, y));
  implicit_gemm::dispatch_halves(y.dtype(), "conv2d_forward", [&]<typename T>(TypeTag<T>) {
    g.k <= 32 ? run<T, 32>(g, x, w, epilogue, y) : run<T, 64>(g, x, w, epilogue, y);
  });
}

}  // namespace tandem::kernels::cuda::few_channels

// Images whose pixels are those of other images, moved.
#include "tandem/kernels/augment/gather_pixels.h"

#include "tandem/core/cuda/current_stream.h"
#include "tandem/core/cuda/launch.h"
#include "tandem/kernels/augment/image_loop.h"
#include "tandem/kernels/augment/pad2d_implementations.h"
#include "tandem/kernels/device/dispatch.h"
#include "tandem/kernels/device/grid.h"
#include "tandem/kernels/device/nest_offsets.h"
#include "tandem/kernels/device/vector.h"

namespace tandem::kernels::cuda {

namespace {

/// Where the images that are read have their pixels.
struct PixelSource {
  PixelMap map;
  std::int64_t height, width, row_step, column_step;

  /// The offset of the pixel that (h, w) shows, or -1 for none.
  __device__ std::int64_t offset(std::int64_t h, std::int64_t w) const {
    std::int64_t row = h - map.top, column = map.flip ? width - 1 - w : w - map.left;
    if (map.reflect) {
      row = kernels::detail::reflect(row, height);
      column = kernels::detail::reflect(column, width);
    }
    const bool inside = row >= 0 && row < height && column >= 0 && column < width;
    return inside ? row * row_step + column * column_step : -1;
  }
};

/// One vector of channels per thread and step, in the memory order of `out`; `first_*` are the row and column from
/// which the nest counts.
template <int kWidth, typename Word>
__global__ void move_pixels(const Word* x, Word* out, device::Nest<4> nest, std::int64_t first_row,
                            std::int64_t first_column, PixelSource source) {
  const unsigned step = gridDim.x * blockDim.x;
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < nest.count; i += step) {
    const auto at = device::offsets_of(nest, i);
    const std::int64_t from = source.offset(first_row + at.offset[2], first_column + at.offset[3]);
    device::Vector<Word, kWidth> value{};
    if (from >= 0) value = device::load_vector<kWidth>(x + (at.offset[1] + from) * kWidth);
    device::store_vector(out + at.offset[0] * kWidth, value);
  }
}

template <typename Word>
void launch_moves(const Tensor& x, const PixelMap& map, const Out& out) {
  constexpr int kWidth = device::kVectorWidth<Word>;
  const cudaStream_t stream = tandem::cuda::current_stream(out);
  const ImageLoop loop(out, x);
  const PixelSource source{map, x.size(2), x.size(3), loop.row_step, loop.column_step};
  loop.nest.for_each_part([&](const device::Nest<4>& part, const auto& starts) {
    const unsigned blocks = device::blocks_for(part.count, device::kThreadsPerBlock);
    launch(loop.width == 1 ? move_pixels<1, Word> : move_pixels<kWidth, Word>, {blocks, device::kThreadsPerBlock},
           stream, static_cast<const Word*>(x.raw_data()) + starts[1] * loop.width,
           static_cast<Word*>(out.raw_data()) + starts[0] * loop.width, part, starts[2], starts[3], source);
  });
}

}  // namespace

void gather_pixels(std::string_view op, const Tensor& x, const PixelMap& map, const Out& out) {
  device::dispatch(out.dtype(), op, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if (out.numel() == 0) return;
    // Nothing is computed, so that only the size of elements matters.
    launch_moves<std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint16_t>>(x, map, out);
  });
}

}  // namespace tandem::kernels::cuda

// Convolution as a tiled matrix product over patches; bias, ReLU and its mask are applied to the sums in registers.
#include "tandem/kernels/conv/tile/patches.cuh"
#include "tandem/kernels/conv/tile/tile.h"
#include "tandem/kernels/device/dispatch.h"
#include "tandem/kernels/device/half.h"
#include "tandem/kernels/device/reduce.h"
#include "tandem/kernels/device/vector.h"
#include "tandem/kernels/gemm/product.cuh"

namespace tandem::kernels::cuda::tile {
namespace {

/// A matrix that also gets a bit for each positive element. With a mask, columns are a multiple of 8 and stored by
/// fours.
template <typename T>
struct MaskedResult : MatrixResult<T> {
  std::uint8_t* mask = nullptr;

  template <int kCount>
  __device__ void store(std::int64_t row, std::int64_t column, const device::Vector<float, kCount>& sums) const {
    if (this->parts != nullptr || mask == nullptr) return MatrixResult<T>::store(row, column, sums);
    unsigned bits = 0;
    if (this->holds(row, column)) {
      const auto values = this->finished(row, column, sums);
      device::store_vector(this->data + row * this->row_stride + column, values);
#pragma unroll
      for (int j = 0; j < kCount; ++j) bits |= (device::to_float(values[j]) > 0.0f ? 1u : 0u) << j;
    }
    if constexpr (kCount == kSide) {  // this thread's four bits and its neighbour's make a byte
      bits |= __shfl_down_sync(device::kAllLanes, bits, 1) << kSide;
      if (this->holds(row, column) && column % 8 == 0)
        mask[(row * this->columns + column) / 8] = static_cast<std::uint8_t>(bits);
    }
  }
};

}  // namespace

std::string_view obstacle(PassKind /*all*/, const ConvGeometry& g, const Operands& /*of any address*/) {
  constexpr std::int64_t kMost = std::numeric_limits<int>::max() / 2;  // indices are 32-bit numbers
  const auto padded = [](std::int64_t size, std::int64_t pad, std::int64_t taps, std::int64_t dilation) {
    return size + 2 * pad + taps * dilation;
  };
  if (g.groups != 1) return "there is more than one group";
  if (g.input_numel() == 0 || g.output_numel() == 0) return "a tensor is empty";
  const bool fits = g.n * g.h * g.w <= kMost && g.n * g.p * g.q <= kMost && g.r * g.s * g.c <= kMost &&
                    g.r * g.s * g.k <= kMost && padded(g.h, g.pad_h, g.r, g.dilation_h) <= kMost &&
                    padded(g.w, g.pad_w, g.s, g.dilation_w) <= kMost && g.stride_h <= kMost && g.stride_w <= kMost;
  return fits ? "" : "there are more than 2^30 pixels, or taps and channels (32-bit indices)";
}

void forward(const ConvGeometry& g, const Tensor& x, const Tensor& w, const Epilogue& epilogue, const Out& y) {
  device::dispatch(y.dtype(), "conv2d_forward", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const std::int64_t pixels = g.n * g.p * g.q, depth = g.r * g.s * g.c;
    const Patches<T> patches{x.data<T>(), TileGeometry(g), pixels};
    const Matrix<T> weights{w.data<T>(), g.k, depth, 1};
    MaskedResult<T> result{{.data = y.data<T>(),
                            .rows = pixels,
                            .columns = g.k,
                            .row_stride = g.k,
                            .bias = data_or_null<T>(epilogue.bias),
                            .relu = epilogue.relu}};
    const bool vectors =
        g.c % 4 == 0 && starts_fours(patches.x) && weights.takes_vectors(depth) && result.takes_vectors();
    const bool in_parts = plan_product(pixels, g.k, depth).parts > 1;
    const bool fused_mask = epilogue.mask.defined() && vectors && g.k % 8 == 0 && !in_parts;
    if (fused_mask) result.mask = epilogue.mask.data<std::uint8_t>();
    multiply(patches, weights, result, depth, vectors, y);
    if (epilogue.mask.defined() && !fused_mask) sign_mask(y, epilogue.mask);
  });
}

}  // namespace tandem::kernels::cuda::tile

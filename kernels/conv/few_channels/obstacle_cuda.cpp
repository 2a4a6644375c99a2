// What the kernels for few channels take, and why not the rest.
#include "tandem/kernels/conv/few_channels/few_channels.h"
#include "tandem/kernels/conv/few_channels/plan.h"

namespace tandem::kernels::cuda::few_channels {

std::string_view obstacle(PassKind /*all*/, const ConvGeometry& g, const Operands& operands) {
  const auto of_geometry = [](const ConvGeometry& geometry) -> std::string_view {
    constexpr std::int64_t kMostDepth = 256, kMostHalo = 16384;  // elements of shared memory
    if (geometry.k % 8 != 0) return "output channels are no multiple of 8 (stores of 16 bytes)";
    if (geometry.c * geometry.r * geometry.s > kMostDepth) return "a patch has more than 256 elements";
    if (geometry.n == 0 || geometry.p == 0 || geometry.q == 0) return "a tensor is empty";
    const TileExtent tile = extent_of_tile(geometry);
    const bool fits =
        static_cast<double>(tile.halo_lines) * static_cast<double>(pitch_of(tile.halo_row, geometry.c)) <= kMostHalo;
    return fits ? "" : "the part of an image that 128 outputs need has more than 16384 elements";
  };
  if (!is_half(operands.dtype)) return "tensor cores multiply f16 and bf16 here";
  return tensor_core_obstacle(of_geometry, g, operands);
}

}  // namespace tandem::kernels::cuda::few_channels

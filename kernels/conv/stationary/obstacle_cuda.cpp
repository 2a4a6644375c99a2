// What the kernels with weights that stay in shared memory take, why not the rest, and when they pay.
#include "tandem/core/cuda/device_limits.h"
#include "tandem/kernels/conv/implicit_gemm/tile_shape.h"
#include "tandem/kernels/conv/stationary/plan.h"
#include "tandem/kernels/conv/stationary/stationary.h"

namespace tandem::kernels::cuda::stationary {

std::string_view obstacle(PassKind pass, const ConvGeometry& g, const Operands& operands) {
  const auto of_geometry = [](const ConvGeometry& geometry) -> std::string_view {
    if (geometry.c % 8 != 0 || geometry.k % 8 != 0) return "channels are no multiples of 8 (copies of 16 bytes)";
    if (geometry.c > kMostChannels || geometry.k > kMostChannels) return "there are more than 128 channels";
    if (geometry.stride_h != 1 || geometry.stride_w != 1) return "strides are not 1";
    return "";
  };
  if (!is_half(operands.dtype)) return "tensor cores multiply f16 and bf16 here";
  if (const std::string_view reason = tensor_core_obstacle(of_geometry, g, operands); !reason.empty()) return reason;
  const bool of_weight = pass == PassKind::backward_weight;
  if (of_weight && (g.c > kMostWeightChannels || g.k > kMostWeightChannels || g.r * g.s > kMostWeightTaps))
    return "there are more than 64 channels or 9 taps (sums in registers)";
  const Task task(g, pass);
  if (task.lines() == 0 || task.line() == 0) return "there is no whole window to pool";
  const std::int64_t bytes = of_weight ? WeightParts(g).all_shared_bytes() : Plan(task).shared_bytes();
  const bool fits = bytes <= tandem::cuda::device_limits(operands.device).shared_bytes;
  return fits ? "" : "two halos, and what goes with them, do not fit into the shared memory of a multiprocessor";
}

bool pays(PassKind pass, const ConvGeometry& g) {
  constexpr std::int64_t kMostForOneBlock = 64;  // channels, in and out, for which a block has all weights
  if (pass == PassKind::backward_weight) return false;
  const Task task(g, pass);
  if (task.channels > kMostForOneBlock || task.columns > kMostForOneBlock || task.taps() == 1) return false;
  const std::int64_t tile_pixels = Plan(task).tile_lines * kTileColumns, tiles = tiles_of(task);
  const std::int64_t made = task.images * task.lines() * task.line();
  return tiles >= implicit_gemm::kBlocksThatFill && 5 * made >= 3 * tiles * tile_pixels;
}

}  // namespace tandem::kernels::cuda::stationary

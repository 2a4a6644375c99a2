// What warpgroups take, and why not the rest.
#include "tandem/core/cuda/device_limits.h"
#include "tandem/kernels/conv/warpgroup/warpgroup.h"

namespace tandem::kernels::cuda::warpgroup {

std::string_view obstacle(PassKind /*all*/, const ConvGeometry& g, const Operands& operands) {
  const auto of_geometry = [](const ConvGeometry& geometry) -> std::string_view {
    if (geometry.c % 8 != 0 || geometry.k % 8 != 0) return "channels are no multiples of 8 (copies of 16 bytes)";
    if (geometry.stride_h != 1 || geometry.stride_w != 1) return "strides are not 1";
    return "";
  };
  if (!TANDEM_HAS_SM90A) return "this build has no code for sm_90a (CMAKE_CUDA_ARCHITECTURES)";
  if (!is_half(operands.dtype)) return "warpgroups multiply f16 and bf16 here";
  if (const std::string_view reason = tensor_core_obstacle(of_geometry, g, operands); !reason.empty()) return reason;
  const bool has_wgmma = tandem::cuda::device_limits(operands.device).capability == 90;
  return has_wgmma ? "" : "the GPU's compute capability is not 9.0";
}

}  // namespace tandem::kernels::cuda::warpgroup

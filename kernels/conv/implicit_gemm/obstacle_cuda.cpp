// What the implicit product takes, and why not the rest.
#include "tandem/kernels/conv/implicit_gemm/implicit_gemm.h"
#include "tandem/kernels/float32_products.h"

namespace tandem::kernels::cuda::implicit_gemm {

std::string_view obstacle(PassKind /*all*/, const ConvGeometry& g, const Operands& operands) {
  const auto of_geometry = [](const ConvGeometry& geometry) -> std::string_view {
    return geometry.c % 8 != 0 || geometry.k % 8 != 0 ? "channels are no multiples of 8 (copies of 16 bytes)" : "";
  };
  if (operands.dtype == DType::f32 && float32_products() == Float32Products::full)
    return "f32 is multiplied in full (set_float32_products() with tf32 or tf32x3 uses tensor cores)";
  if (operands.dtype != DType::f32 && !is_half(operands.dtype)) return "tensor cores multiply f16, bf16 and f32 here";
  return tensor_core_obstacle(of_geometry, g, operands);
}

}  // namespace tandem::kernels::cuda::implicit_gemm

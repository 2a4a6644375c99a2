// Which implementation multiplies matrices.
#pragma once

#include <cstdint>
#include <string_view>

namespace tandem::kernels {

/// `automatic` decides by size.
enum class GemmImpl : std::uint8_t {
  automatic,
  fused,   // this project's own kernels
  cublas,  // the library, on a GPU only
};

std::string_view name_of(GemmImpl impl);

/// "auto", "fused" or "cublas"; anything else throws.
GemmImpl parse_gemm_impl(std::string_view text);

}  // namespace tandem::kernels

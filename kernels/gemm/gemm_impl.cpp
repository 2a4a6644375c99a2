// Names of the implementations of matrix products.
#include "kernels/gemm/gemm_impl.h"

#include "core/error.h"

#include <array>

namespace tandem::kernels {
namespace {

constexpr std::array<std::string_view, 3> kNames{"auto", "fused", "cublas"};

}  // namespace

std::string_view name_of(GemmImpl impl) { return kNames[static_cast<std::size_t>(impl)]; }

GemmImpl parse_gemm_impl(std::string_view text) {
  for (std::size_t i = 0; i < kNames.size(); ++i)
    if (kNames[i] == text) return static_cast<GemmImpl>(i);
  fail("unknown implementation of matrix products '{}': choose auto, fused or cublas", text);
}

}  // namespace tandem::kernels

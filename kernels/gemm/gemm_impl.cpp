// Names of the implementations of matrix products.
#include "tandem/kernels/gemm/gemm_impl.h"

#include "tandem/core/error.h"
#include "tandem/core/suggest.h"
#include "tandem/kernels/implementations.h"

#include <array>

namespace tandem::kernels {
namespace {

constexpr std::array<std::string_view, 3> kNames{"auto", "fused", "cublas"};

}  // namespace

std::string_view name_of(GemmImpl impl) { return kNames[static_cast<std::size_t>(impl)]; }

std::span<const std::string_view> gemm_impl_names() { return kNames; }

GemmImpl parse_gemm_impl(std::string_view text) {
  for (std::size_t i = 0; i < kNames.size(); ++i)
    if (kNames[i] == text) return static_cast<GemmImpl>(i);
  fail("{}", unknown_name("implementation of matrix products", text, kNames));
}

}  // namespace tandem::kernels

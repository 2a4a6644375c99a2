// Activations that other ops compute in the same pass.
#pragma once

#include <cstdint>
#include <type_traits>

namespace tandem::kernels {

/// What stands behind an op, computed by its own kernels. GELU is the exact one (gelu.h), SiLU that of silu.h.
enum class Activation : std::uint8_t { none, relu, gelu, silu };

/// Calls visit with an activation as an integral_constant.
template <typename Visitor>
decltype(auto) visit_activation(Activation activation, Visitor&& visit) {
  switch (activation) {
    case Activation::relu:
      return visit(std::integral_constant<Activation, Activation::relu>{});
    case Activation::gelu:
      return visit(std::integral_constant<Activation, Activation::gelu>{});
    case Activation::silu:
      return visit(std::integral_constant<Activation, Activation::silu>{});
    default:
      return visit(std::integral_constant<Activation, Activation::none>{});
  }
}

}  // namespace tandem::kernels

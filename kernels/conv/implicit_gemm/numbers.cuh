// The numbers that tensor cores multiply: what one instruction takes, and what is done to them before.
#pragma once

#include "tandem/core/half.h"
#include "tandem/kernels/device/atoms.h"

#include <concepts>
#include <type_traits>

namespace tandem::kernels::cuda::implicit_gemm {

template <typename Numbers, int kRegisters>
using OperandOf = typename Numbers::template Operand<kRegisters>;

/// How a kind of number is multiplied. `Element` is what lies in memory; an instruction multiplies 16 rows by 8
/// columns, kInstructionDepth deep. `Operand<n>` is a lane's share of one operand, made from the n registers that were
/// loaded.
template <typename Numbers>
concept TensorCoreNumbers = std::constructible_from<OperandOf<Numbers, 4>,
                                                    const std::uint32_t (&)[4]> &&
                            requires(float (&accumulators)[4],  // (2 rows x 2 columns of this lane)
                                     const OperandOf<Numbers, 4>& left, const OperandOf<Numbers, 2>& right) {
                              typename Numbers::Element;
                              { Numbers::kInstructionDepth } -> std::convertible_to<int>;
                              Numbers::multiply(accumulators, left, right);  // accumulators += left right
                            };

/// Half and BFloat16, as they are.
template <typename T>
struct Halves {
  using Element = T;
  static constexpr int kInstructionDepth = 16;

  template <int kCount>
  struct Operand {
    const std::uint32_t (&registers)[kCount];

    __device__ explicit Operand(const std::uint32_t (&loaded)[kCount]) : registers(loaded) {}
  };

  static __device__ void multiply(float (&accumulators)[4], const std::uint32_t (&left)[4],
                                  const std::uint32_t (&right)[2]) {
    if constexpr (std::is_same_v<T, Half>) {
      device::mma_m16n8k16_f16(accumulators, left, right);
    } else {
      static_assert(std::is_same_v<T, BFloat16>);
      device::mma_m16n8k16_bf16(accumulators, left, right);
    }
  }

  static __device__ void multiply(float (&accumulators)[4], const Operand<4>& left, const Operand<2>& right) {
    multiply(accumulators, left.registers, right.registers);
  }
};

/// f32, rounded to the 10 bits of mantissa that tensor cores read.
struct Tf32 {
  using Element = float;
  static constexpr int kInstructionDepth = 8;

  template <int kCount>
  struct Operand {
    std::uint32_t rounded[kCount];

    __device__ explicit Operand(const std::uint32_t (&loaded)[kCount]) {
#pragma unroll
      for (int i = 0; i < kCount; ++i) rounded[i] = device::round_to_tf32(__uint_as_float(loaded[i]));
    }
  };

  static __device__ void multiply(float (&accumulators)[4], const Operand<4>& left, const Operand<2>& right) {
    device::mma_m16n8k8_tf32(accumulators, left.rounded, right.rounded);
  }
};

/// f32 as the sum of two such numbers; of the four products all but the smallest are added, small ones first. As
/// accurate as products in f32, within a bit or two; but an infinity gives NaN, as it leaves no rest. Idea: Ootomo and
/// Yokota, "Recovering single precision accuracy from Tensor Cores while surpassing the FP32 theoretical peak
/// performance" (2022).
struct SplitTf32 {
  using Element = float;
  static constexpr int kInstructionDepth = 8;

  template <int kCount>
  struct Operand {
    std::uint32_t large[kCount], small[kCount];

    __device__ explicit Operand(const std::uint32_t (&loaded)[kCount]) {
#pragma unroll
      for (int i = 0; i < kCount; ++i) {
        const float value = __uint_as_float(loaded[i]);
        large[i] = device::round_to_tf32(value);
        small[i] = device::round_to_tf32(value - __uint_as_float(large[i]));
      }
    }
  };

  static __device__ void multiply(float (&accumulators)[4], const Operand<4>& left, const Operand<2>& right) {
    device::mma_m16n8k8_tf32(accumulators, left.small, right.large);
    device::mma_m16n8k8_tf32(accumulators, left.large, right.small);
    device::mma_m16n8k8_tf32(accumulators, left.large, right.large);
  }
};

static_assert(TensorCoreNumbers<Halves<Half>> && TensorCoreNumbers<Halves<BFloat16>>);
static_assert(TensorCoreNumbers<Tf32> && TensorCoreNumbers<SplitTf32>);

}  // namespace tandem::kernels::cuda::implicit_gemm

// Elements of any storage dtype in kernels: read as float, computed in float, rounded once when stored.
#pragma once

#include "tandem/core/half.h"

#include <cuda_runtime.h>

#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#endif

namespace tandem::device {

__device__ inline float to_float(float value) { return value; }

__device__ inline float to_float(Half value) {
#ifdef __CUDA_ARCH__
  return __half2float(__ushort_as_half(value.bits));
#else
  return static_cast<float>(value);
#endif
}

__device__ inline float to_float(BFloat16 value) { return __uint_as_float(static_cast<unsigned>(value.bits) << 16); }

/// Rounds to nearest even.
template <typename T>
__device__ inline T from_float(float value) {
  return T(value);
}

#ifdef __CUDA_ARCH__
template <>
__device__ inline Half from_float<Half>(float value) {
  Half result;
  result.bits = __half_as_ushort(__float2half_rn(value));
  return result;
}

template <>
__device__ inline BFloat16 from_float<BFloat16>(float value) {
  BFloat16 result;
  result.bits = __bfloat16_as_ushort(__float2bfloat16_rn(value));
  return result;
}
#endif

}  // namespace tandem::device

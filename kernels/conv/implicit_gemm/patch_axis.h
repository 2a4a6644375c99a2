// Which inputs the taps of a convolution meet, along one axis of its images.
#pragma once

#include "tandem/kernels/conv/geometry.h"

#include <cuda_runtime.h>

namespace tandem::kernels::cuda::implicit_gemm {

/// Tap t of output number i is input i * stride + first + t * step; outside of [0, inputs) it is 0.
struct PatchAxis {
  int outputs, inputs, taps;
  int stride, first, step;

  __device__ bool holds(int input) const { return static_cast<unsigned>(input) < static_cast<unsigned>(inputs); }
};

/// The axes of a convolution's patches of x.
inline PatchAxis patches_down(const ConvGeometry& g) {
  return {static_cast<int>(g.p),        static_cast<int>(g.h),      static_cast<int>(g.r),
          static_cast<int>(g.stride_h), static_cast<int>(-g.pad_h), static_cast<int>(g.dilation_h)};
}
inline PatchAxis patches_across(const ConvGeometry& g) {
  return {static_cast<int>(g.q),        static_cast<int>(g.w),      static_cast<int>(g.s),
          static_cast<int>(g.stride_w), static_cast<int>(-g.pad_w), static_cast<int>(g.dilation_w)};
}

}  // namespace tandem::kernels::cuda::implicit_gemm

// Tensor maps of halves for kernels under test.
#pragma once

#include <cuda.h>
#include <cuda_runtime.h>

#include <catch2/catch.hpp>

#include <array>

namespace tandem::test {

/// Sizes and box are innermost first.
inline CUtensorMap map_of_halves(void* data, const std::array<cuuint64_t, 4>& sizes,
                                 const std::array<cuuint32_t, 4>& box, bool swizzled = true) {
  void* function = nullptr;
  REQUIRE(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault) ==
          cudaSuccess);
  const std::array<cuuint64_t, 3> strides{sizes[0] * 2, sizes[0] * sizes[1] * 2, sizes[0] * sizes[1] * sizes[2] * 2};
  const std::array<cuuint32_t, 4> steps{1, 1, 1, 1};
  CUtensorMap map{};
  REQUIRE(reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(function)(
              &map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 4, data, sizes.data(), strides.data(), box.data(), steps.data(),
              CU_TENSOR_MAP_INTERLEAVE_NONE, swizzled ? CU_TENSOR_MAP_SWIZZLE_128B : CU_TENSOR_MAP_SWIZZLE_NONE,
              CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS);
  return map;
}

}  // namespace tandem::test

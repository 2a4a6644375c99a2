// Asking the driver for tensor maps; found through the runtime, so that nothing links with the driver.
#include "tandem/kernels/conv/warpgroup/tensor_maps.h"

#include "tandem/core/cuda/check.h"
#include "tandem/core/cuda/current_stream.h"
#include "tandem/core/error.h"
#include "tandem/core/failed_call.h"

#include <cuda_runtime.h>
#include <fmt/format.h>

namespace tandem::kernels::cuda::warpgroup {
namespace {

/// Null if the driver has no such function.
template <typename Function>
Function* find_in_driver(const char* name) {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult result{};
#if CUDART_VERSION >= 12050
  constexpr unsigned kSince = 12000;  // the driver API's version that has it
  TANDEM_CHECK_CUDA(cudaGetDriverEntryPointByVersion(name, &function, kSince, cudaEnableDefault, &result));
#else  // which CUDA 13 no longer has
  TANDEM_CHECK_CUDA(cudaGetDriverEntryPoint(name, &function, cudaEnableDefault, &result));
#endif
  return result == cudaDriverEntryPointSuccess ? reinterpret_cast<Function*>(function) : nullptr;
}

using Encode = decltype(cuTensorMapEncodeTiled);

Encode* find_encode() {
  Encode* const encode = find_in_driver<Encode>("cuTensorMapEncodeTiled");
  require(encode != nullptr,
          "the driver has no tensor maps (cuTensorMapEncodeTiled): update it to one for CUDA 12 or later");
  return encode;
}

/// The driver's words for an error.
std::string error_text(CUresult error) {
  auto* const describe = find_in_driver<decltype(cuGetErrorString)>("cuGetErrorString");
  const char* text = nullptr;
  if (describe != nullptr) describe(error, &text);
  return fmt::format("{} (code {})", text != nullptr ? text : "unknown error", static_cast<int>(error));
}

}  // namespace

CUtensorMap map_of(const Tensor& tensor, const std::array<std::int64_t, 4>& sizes, const std::array<int, 4>& box) {
  tandem::cuda::current_stream(tensor);  // the driver needs this thread's context, which the runtime makes
  const DType dtype = tensor.dtype();
  static Encode* const encode = find_encode();
  std::array<cuuint64_t, 4> map_sizes{};  // the driver counts innermost first
  std::array<cuuint32_t, 4> map_box{}, steps{1, 1, 1, 1};
  std::array<cuuint64_t, 3> strides{};
  std::uint64_t stride = size_of(dtype);
  for (std::size_t i = 0; i < 4; ++i) {
    map_sizes[i] = static_cast<cuuint64_t>(sizes[3 - i]);
    map_box[i] = static_cast<cuuint32_t>(box[3 - i]);
    stride *= map_sizes[i];
    if (i < 3) strides[i] = stride;
  }
  CUtensorMap map{};
  const CUresult result =
      encode(&map, dtype == DType::f16 ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16 : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 4,
             const_cast<void*>(static_cast<const void*>(tensor.raw_data())), map_sizes.data(), strides.data(),
             map_box.data(), steps.data(), CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
             CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result != CUDA_SUCCESS)
    fail_call({.library = "CUDA driver",
               .error = error_text(result),
               .call = "cuTensorMapEncodeTiled",
               .where = std::source_location::current(),
               .more = fmt::format("for {} [{}] by [{}]; choose impl fused", name_of(dtype), fmt::join(sizes, ", "),
                                   fmt::join(box, ", "))});
  return map;
}

}  // namespace tandem::kernels::cuda::warpgroup

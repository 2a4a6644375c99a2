// A library with the functions of cuBLAS that this project calls: it multiplies in host memory and notes its settings.
#include "tests/kernels/host_blas.h"

#include <cublas_v2.h>

#include <cstdint>

namespace {

/// What a handle was told; a product without the settings that make it deterministic is refused.
struct Handle {
  bool has_workspace = false, without_atomics = false, exact_sums = false;
};

Handle& handle_of(cublasHandle_t handle) { return *reinterpret_cast<Handle*>(handle); }

tandem::DType dtype_of(cudaDataType type) {
  return type == CUDA_R_16F ? tandem::DType::f16 : type == CUDA_R_16BF ? tandem::DType::bf16 : tandem::DType::f32;
}

}  // namespace

extern "C" {

cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) {
  *handle = reinterpret_cast<cublasHandle_t>(new Handle);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetStream_v2(cublasHandle_t, cudaStream_t) { return CUBLAS_STATUS_SUCCESS; }

cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void* workspace, std::size_t bytes) {
  handle_of(handle).has_workspace =
      workspace != nullptr && bytes >= 1 << 20 && reinterpret_cast<std::uintptr_t>(workspace) % 16 == 0;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetAtomicsMode(cublasHandle_t handle, cublasAtomicsMode_t mode) {
  handle_of(handle).without_atomics = mode == CUBLAS_ATOMICS_NOT_ALLOWED;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode) {
  handle_of(handle).exact_sums = mode == CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t transpose_a, cublasOperation_t transpose_b, int m,
                            int n, int k, const void* alpha, const void* a, cudaDataType a_type, int a_leading,
                            const void* b, cudaDataType b_type, int b_leading, const void* beta, void* c,
                            cudaDataType c_type, int c_leading, cublasComputeType_t compute, cublasGemmAlgo_t) {
  const Handle& state = handle_of(handle);
  if (!state.has_workspace || !state.without_atomics || !state.exact_sums) return CUBLAS_STATUS_NOT_INITIALIZED;
  const float factor = *static_cast<const float*>(alpha), kept = *static_cast<const float*>(beta);
  const bool one_type = a_type == b_type && a_type == c_type;
  const bool fits =
      a_leading >= (transpose_a == CUBLAS_OP_T ? k : m) && b_leading >= (transpose_b == CUBLAS_OP_T ? n : k);
  if (factor != 1.0f || !one_type || !fits || c_leading < m || compute != CUBLAS_COMPUTE_32F)
    return CUBLAS_STATUS_INVALID_VALUE;
  tandem::test::host_blas({.transpose_a = transpose_a == CUBLAS_OP_T,
                           .transpose_b = transpose_b == CUBLAS_OP_T,
                           .m = m,
                           .n = n,
                           .k = k,
                           .a = a,
                           .a_leading = a_leading,
                           .b = b,
                           .b_leading = b_leading,
                           .c = c,
                           .c_leading = c_leading,
                           .accumulate = kept == 1.0f,
                           .dtype = dtype_of(a_type)});
  return CUBLAS_STATUS_SUCCESS;
}

const char* cublasGetStatusString(cublasStatus_t status) {
  return status == CUBLAS_STATUS_INVALID_VALUE ? "invalid value" : "not initialized";
}

cublasStatus_t cublasGetProperty(libraryPropertyType part, int* value) {
  *value = part == MAJOR_VERSION ? FAKE_CUBLAS_MAJOR : 2;
  return CUBLAS_STATUS_SUCCESS;
}

}  // extern "C"

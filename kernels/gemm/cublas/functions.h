// cuBLAS's functions, by a table: the program is not linked against it. Only in builds with cuBLAS.
#pragma once

#include "tandem/core/failed_call.h"
#include "tandem/core/library_file.h"

#include <cublas_v2.h>

namespace tandem::kernels {

/// What is used of cuBLAS, under its own names without the prefix.
struct CublasFunctions {
  explicit CublasFunctions(const LibraryFile& file) {
    file.find("cublasCreate_v2", Create);
    file.find("cublasSetStream_v2", SetStream);
    file.find("cublasSetWorkspace_v2", SetWorkspace);
    file.find("cublasSetMathMode", SetMathMode);
    file.find("cublasSetAtomicsMode", SetAtomicsMode);
    file.find("cublasGemmEx", GemmEx);
    file.find("cublasGetStatusString", GetStatusString);
  }

  decltype(&cublasCreate_v2) Create;
  decltype(&cublasSetStream_v2) SetStream;
  decltype(&cublasSetWorkspace_v2) SetWorkspace;
  decltype(&cublasSetMathMode) SetMathMode;
  decltype(&cublasSetAtomicsMode) SetAtomicsMode;
  cublasStatus_t (*GemmEx)(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int, const void*,
                           const void*, cudaDataType, int, const void*, cudaDataType, int, const void*, void*,
                           cudaDataType, int, cublasComputeType_t, cublasGemmAlgo_t);
  decltype(&cublasGetStatusString) GetStatusString;

  /// Throws Error with cuBLAS's words for `status`, the call and its place, unless it is success.
  void throw_if_failed(cublasStatus_t status, const char* call, const SourceLine& where) const {
    if (status == CUBLAS_STATUS_SUCCESS) [[likely]]
      return;
    fail_call({.library = "cuBLAS",
               .error = GetStatusString(status),
               .call = call,
               .where = where,
               .more = "impl fused does without it"});
  }
};

}  // namespace tandem::kernels

/// Evaluates a call of a function of the table `cublas`, named without its prefix, and throws Error where it fails. A
/// macro only to have the call's text.
#define TANDEM_CHECK_CUBLAS(cublas, call) (cublas).throw_if_failed((cublas).call, "cublas" #call, {__FILE__, __LINE__})

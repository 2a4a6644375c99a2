// cuDNN's functions, by a table: the program is not linked against it. Those of graphs and plans are called by the
// frontend (symbols.h). Only in builds with cuDNN.
#pragma once

#include "tandem/core/failed_call.h"
#include "tandem/core/library_file.h"

#include <cudnn.h>

namespace tandem::kernels::cudnn {

/// What is used of cuDNN directly, under its own names without the prefix.
struct CudnnFunctions {
  explicit CudnnFunctions(const LibraryFile& file) {
    file.find("cudnnCreate", Create);
    file.find("cudnnSetStream", SetStream);
    file.find("cudnnGetErrorString", GetErrorString);
  }

  decltype(&cudnnCreate) Create;
  decltype(&cudnnSetStream) SetStream;
  decltype(&cudnnGetErrorString) GetErrorString;

  /// Throws Error with cuDNN's words for `status`, the call and its place, unless it is success.
  void throw_if_failed(cudnnStatus_t status, const char* call, const SourceLine& where) const {
    if (status == CUDNN_STATUS_SUCCESS) [[likely]]
      return;
    fail_call({.library = "cuDNN",
               .error = GetErrorString(status),
               .call = call,
               .where = where,
               .more = "choose impl fused"});
  }
};

}  // namespace tandem::kernels::cudnn

/// Evaluates a call of a function of the table `cudnn`, named without its prefix, and throws Error where it fails. A
/// macro only to have the call's text.
#define TANDEM_CHECK_CUDNN(cudnn, call) (cudnn).throw_if_failed((cudnn).call, "cudnn" #call, {__FILE__, __LINE__})

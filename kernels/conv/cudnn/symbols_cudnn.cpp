// Functions of cuDNN come from the file that was found, those of the CUDA runtime from this program.
#include "tandem/kernels/conv/cudnn/symbols.h"

#include "tandem/core/error.h"

#include <cuda_runtime_api.h>

#include <optional>
#include <string_view>
#include <utility>

namespace tandem::kernels::cudnn {
namespace {

/// What is called while plans are made and run. Others are looked up when they are called.
constexpr const char* kFunctions[] = {
    "cudnnGetVersion",          "cudnnGetErrorString",          "cudnnGetLastErrorString",
    "cudnnGetStream",           "cudnnBackendCreateDescriptor", "cudnnBackendDestroyDescriptor",
    "cudnnBackendSetAttribute", "cudnnBackendGetAttribute",     "cudnnBackendFinalize",
    "cudnnBackendExecute"};

template <typename Function>
void* address_of(Function* function) {
  return reinterpret_cast<void*>(function);
}

/// A plan that is compiled at run time is kept alive by the CUDA graph that it is recorded into: that is what these are
/// for.
const std::pair<std::string_view, void*> kRuntime[] = {
    {"cudaRuntimeGetVersion", address_of(cudaRuntimeGetVersion)},
    {"cudaGetDevice", address_of(cudaGetDevice)},
    {"cudaGetErrorString", address_of(cudaGetErrorString)},
    {"cudaGetLastError", address_of(cudaGetLastError)},
#if CUDART_VERSION >= 13000
    {"cudaStreamGetCaptureInfo", address_of(cudaStreamGetCaptureInfo)},
#else
    {"cudaStreamGetCaptureInfo_v2", address_of(cudaStreamGetCaptureInfo_v2)},
#endif
    {"cudaUserObjectCreate", address_of(cudaUserObjectCreate)},
    {"cudaUserObjectRelease", address_of(cudaUserObjectRelease)},
    {"cudaGraphRetainUserObject", address_of(cudaGraphRetainUserObject)},
    {"cudaThreadExchangeStreamCaptureMode", address_of(cudaThreadExchangeStreamCaptureMode)},
};

std::optional<LibraryFile>& library_in_use() {
  // Never destroyed: plans may be destroyed after static objects are.
  static auto& library = *new std::optional<LibraryFile>;
  return library;
}

}  // namespace

void use_library(const LibraryFile& file) {
  std::optional<LibraryFile>& used = library_in_use();
  if (!used) {
    for (const char* const name : kFunctions) file.function(name);
    used = file;
  }
  require(used->path() == file.path(), "cuDNN: this process works with {} already, not with {}", used->path(),
          file.path());
}

void* open_library(const char* file) {
  static int runtime;
  const std::string own = fmt::format("libcudart.so.{}", CUDART_VERSION / 1000);
  return std::string_view(file).ends_with(own) ? &runtime : nullptr;
}

void* find_symbol(const char* name) {
  const std::string_view wanted = name;
  if (wanted.starts_with("cudnn")) return library_in_use().value().function(name);
  for (const auto& [known, address] : kRuntime)
    if (known == wanted) return address;
  return nullptr;
}

}  // namespace tandem::kernels::cudnn

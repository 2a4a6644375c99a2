// The one way to start a kernel: launch(kernel, {grid, block, shared_bytes}, stream, arguments...).
//
// nvcc turns it into <<<...>>>; without nvcc the kernel runs in the simulator. Either way the launch is checked.
#pragma once

#include "tandem/core/cuda/check.h"

#include <cuda_runtime.h>

#include <cstddef>
#include <source_location>
#include <type_traits>

namespace tandem {

/// How many blocks of how many threads, their dynamic shared memory, and where in the source that was written.
struct LaunchShape {
  dim3 grid;
  dim3 block;
  std::size_t shared_bytes = 0;
  std::source_location where = std::source_location::current();
};

namespace detail {

/// Raises the kernel's limit of dynamic shared memory where it wants more than the 48 KiB that every launch may have.
template <typename Kernel>
void allow_shared_bytes(Kernel* kernel, std::size_t bytes) {
  constexpr std::size_t kAlwaysAllowed = 48 * 1024;
  if (bytes <= kAlwaysAllowed) return;
  TANDEM_CHECK_CUDA(cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel),
                                         cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)));
}

}  // namespace detail

/// Enqueues `kernel` on `stream`. Arguments convert to the kernel's parameter types. Throws Error where the launch is
/// refused; what goes wrong inside the kernel shows later on a GPU, and at once in the simulator.
template <typename... Parameters>
void launch(void (*kernel)(Parameters...), const LaunchShape& shape, cudaStream_t stream,
            std::type_identity_t<Parameters>... arguments) {
  detail::allow_shared_bytes(kernel, shape.shared_bytes);
#ifdef __CUDACC__
  kernel<<<shape.grid, shape.block, shape.shared_bytes, stream>>>(arguments...);
#else
  simulator::launch(kernel, shape.grid, shape.block, shape.shared_bytes, stream, shape.where, arguments...);
#endif
  cuda::throw_if_failed(cudaGetLastError(), "kernel launch", shape.where);
}

}  // namespace tandem

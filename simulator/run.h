// Starting a kernel in the simulator, from what a launch names.
#pragma once

#include "simulator/include/cuda_runtime_api.h"
#include "simulator/include/vector_types.h"

#include <cstddef>
#include <source_location>
#include <tuple>
#include <type_traits>

namespace tandem::simulator {

/// A launch without the types of its arguments; they are copied until it has run.
void enqueue_launch(const void* kernel, dim3 grid, dim3 block, std::size_t shared_bytes, cudaStream_t stream,
                    const std::source_location& where, void (*body)(const void*), const void* arguments,
                    std::size_t argument_bytes, void* (*copy)(const void*), void (*destroy)(void*));

template <typename... Parameters>
void launch(void (*kernel)(Parameters...), dim3 grid, dim3 block, std::size_t shared_bytes, cudaStream_t stream,
            const std::source_location& where, std::type_identity_t<Parameters>... arguments) {
  struct Call {
    void (*kernel)(Parameters...);
    std::tuple<Parameters...> arguments;
  };
  const Call call{kernel, {arguments...}};
  enqueue_launch(
      reinterpret_cast<const void*>(kernel), grid, block, shared_bytes, stream, where,
      [](const void* data) {
        const Call& c = *static_cast<const Call*>(data);
        std::apply(c.kernel, c.arguments);
      },
      &call, sizeof call, [](const void* data) -> void* { return new Call(*static_cast<const Call*>(data)); },
      [](void* data) { delete static_cast<Call*>(data); });
}

}  // namespace tandem::simulator

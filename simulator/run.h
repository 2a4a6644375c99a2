// Starting a kernel in the simulator, from what a launch names.
#pragma once

#include "tandem/simulator/include/cuda_runtime_api.h"
#include "tandem/simulator/include/vector_types.h"

#include <cstddef>
#include <cstring>
#include <source_location>
#include <tuple>
#include <type_traits>

namespace tandem::simulator {

/// The arguments of a launch without their types: `data`, of `bytes` bytes, and what can be done with it.
struct LaunchArguments {
  const void* data;
  std::size_t bytes;
  void (*call)(const void* data);  // the kernel, once, as one thread
  void* (*copy)(const void* data);
  void (*destroy)(void* copy);
  /// Writes `plain_bytes` bytes: the arguments one after another, zeros wherever there is nothing between members, so
  /// that equal arguments have equal bytes.
  void (*write)(const void* data, std::byte* to);
  std::size_t plain_bytes;
};

/// A launch without the types of its arguments; they are copied until it has run.
void enqueue_launch(const void* kernel, dim3 grid, dim3 block, std::size_t shared_bytes, cudaStream_t stream,
                    std::source_location where, const LaunchArguments& arguments);

/// One argument for LaunchArguments::write.
template <typename T>
void write_argument(std::byte*& to, T argument) {
#if __has_builtin(__builtin_clear_padding)
  if constexpr (std::is_trivially_copyable_v<T>) __builtin_clear_padding(&argument);
#endif
  std::memcpy(to, &argument, sizeof(T));
  to += sizeof(T);
}

template <typename... Parameters>
void launch(void (*kernel)(Parameters...), dim3 grid, dim3 block, std::size_t shared_bytes, cudaStream_t stream,
            std::source_location where, std::type_identity_t<Parameters>... arguments) {
  struct Call {
    void (*kernel)(Parameters...);
    std::tuple<Parameters...> arguments;
  };
  const Call call{kernel, {arguments...}};
  enqueue_launch(reinterpret_cast<const void*>(kernel), grid, block, shared_bytes, stream, where,
                 {&call, sizeof call,
                  [](const void* data) {
                    const Call& c = *static_cast<const Call*>(data);
                    std::apply(c.kernel, c.arguments);
                  },
                  [](const void* data) -> void* { return new Call(*static_cast<const Call*>(data)); },
                  [](void* data) { delete static_cast<Call*>(data); },
                  []([[maybe_unused]] const void* data, [[maybe_unused]] std::byte* to) {
                    std::apply([&](const Parameters&... all) { (write_argument<Parameters>(to, all), ...); },
                               static_cast<const Call*>(data)->arguments);
                  },
                  (std::size_t{0} + ... + sizeof(Parameters))});
}

/// What kernel<<<grid, block, bytes, stream>>> is translated to: configure(kernel, grid, block, bytes,
/// stream)(arguments).
template <typename... Parameters>
class ConfiguredLaunch {
 public:
  ConfiguredLaunch(void (*kernel)(Parameters...), dim3 grid, dim3 block, std::size_t shared_bytes, cudaStream_t stream,
                   std::source_location where)
      : kernel_(kernel), grid_(grid), block_(block), shared_bytes_(shared_bytes), stream_(stream), where_(where) {}

  template <typename... Arguments>
  void operator()(Arguments&&... arguments) const {
    launch(kernel_, grid_, block_, shared_bytes_, stream_, where_, static_cast<Parameters>(arguments)...);
  }

 private:
  void (*kernel_)(Parameters...);
  dim3 grid_, block_;
  std::size_t shared_bytes_;
  cudaStream_t stream_;
  std::source_location where_;
};

template <typename... Parameters>
ConfiguredLaunch<Parameters...> configure(void (*kernel)(Parameters...), dim3 grid, dim3 block,
                                          std::size_t shared_bytes = 0, cudaStream_t stream = nullptr,
                                          std::source_location where = std::source_location::current()) {
  return {kernel, grid, block, shared_bytes, stream, where};
}

}  // namespace tandem::simulator

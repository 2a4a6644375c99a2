// Which way a dispatcher goes for tensors on a GPU.
#pragma once

#include "core/tensor.h"

#include <string_view>

namespace tandem::kernels {

/// True in builds with a CUDA device, simulated or not. Dispatchers write
///   if constexpr (kHasCuda)
///     if (on_cuda(y)) return cuda::relu_forward(x, y);
inline constexpr bool kHasCuda = TANDEM_HAS_CUDA != 0;

inline bool on_cuda(const Tensor& tensor) { return tensor.device().type == DeviceType::cuda; }

/// Throws Error unless all tensors that are defined are on the device of `model`.
template <typename... Tensors>
void require_one_device(std::string_view op, const Tensor& model, const Tensors&... tensors) {
  const auto check = [&](const Tensor& tensor) {
    if (!tensor.defined() || tensor.device() == model.device()) return;
    fail("{}: {} is on {}, but {} is on {}; move one of them", op, describe(tensor), name_of(tensor.device()),
         describe(model), name_of(model.device()));
  };
  (check(tensors), ...);
}

}  // namespace tandem::kernels

// Which way a dispatcher goes for tensors on a GPU.
#pragma once

#include "tandem/core/has_cuda.h"
#include "tandem/core/profiler.h"
#include "tandem/core/tensor.h"

#include <optional>
#include <string_view>

namespace tandem::kernels {

/// True where a tensor is on a GPU. Profilers then see a range of the op's name while this lives; what the dispatcher
/// told of its work (add_work) just before is that range's. Dispatchers write
///   if constexpr (kHasCuda)
///     if (const CudaOp op{"relu_forward", y}) return cuda::relu_forward(x, y);
class CudaOp {
 public:
  CudaOp(std::string_view name, const Tensor& tensor) {
    if (tensor.device().type != DeviceType::cuda) return;
    range_.emplace(name);
    range_->take_work_of_outer();
  }
  explicit operator bool() const { return range_.has_value(); }

 private:
  std::optional<ProfileRange> range_;
};

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

// Small tensors of any floating dtype in kernels that are not made for one: per-channel parameters, scalars.
#pragma once

#include "tandem/core/out.h"
#include "tandem/kernels/device/half.h"

namespace tandem::device {

/// The elements of a tensor of rank 0 or 1 on a GPU, as doubles; none where it is undefined.
struct AnyFloats {
  const void* data = nullptr;
  DType dtype = DType::f32;
  std::int64_t stride = 0;

  AnyFloats() = default;
  explicit AnyFloats(const Tensor& tensor) {
    if (!tensor.defined()) return;
    require(tensor.rank() <= 1 && is_floating(tensor.dtype()), "AnyFloats: got {}", describe(tensor));
    data = tensor.raw_data();
    dtype = tensor.dtype();
    stride = tensor.rank() == 1 ? tensor.stride(0) : 0;
  }

  __device__ bool defined() const { return data != nullptr; }

  __device__ double load(std::int64_t i, double absent = 0.0) const {
    if (data == nullptr) return absent;
    const std::int64_t at = i * stride;
    switch (dtype) {
      case DType::f64:
        return static_cast<const double*>(data)[at];
      case DType::f16:
        return to_float(static_cast<const Half*>(data)[at]);
      case DType::bf16:
        return to_float(static_cast<const BFloat16*>(data)[at]);
      default:
        return static_cast<const float*>(data)[at];
    }
  }
};

/// The same where they are written.
struct AnyFloatsOut : AnyFloats {
  AnyFloatsOut() = default;
  explicit AnyFloatsOut(const Out& out) : AnyFloats(out), written(out.defined() ? out.raw_data() : nullptr) {}

  void* written = nullptr;

  /// Does nothing where there is no tensor.
  __device__ void store(std::int64_t i, double value) const {
    if (written == nullptr) return;
    const std::int64_t at = i * stride;
    const auto rounded = static_cast<float>(value);
    switch (dtype) {
      case DType::f64:
        static_cast<double*>(written)[at] = value;
        break;
      case DType::f16:
        static_cast<Half*>(written)[at] = from_float<Half>(rounded);
        break;
      case DType::bf16:
        static_cast<BFloat16*>(written)[at] = from_float<BFloat16>(rounded);
        break;
      default:
        static_cast<float*>(written)[at] = rounded;
    }
  }
};

}  // namespace tandem::device

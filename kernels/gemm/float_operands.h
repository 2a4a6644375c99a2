// Half-precision operands of kernels that take floats: copies in workspace memory, for what is small.
#pragma once

#include "core/parallel.h"
#include "kernels/cast/float_runs.h"
#include "kernels/gemm/scratch.h"

#include <optional>

namespace tandem::kernels::cpu {

/// The elements of a dense tensor of T as floats: its own, or a widened copy that lives as long as this object.
template <typename T>
class FloatInput {
 public:
  /// data() is null where `tensor` is undefined.
  explicit FloatInput(const Tensor& tensor) {
    if (!tensor.defined()) return;
    if constexpr (is_float<T>) {
      data_ = tensor.data<float>();
    } else {
      copy_.emplace(tensor.numel());
      data_ = copy_->data();
      const T* const from = tensor.data<T>();
      parallel_for(tensor.numel(), kGrain, [&](std::int64_t begin, std::int64_t end) {
        widen(from + begin, end - begin, copy_->data() + begin);
      });
    }
  }
  const float* data() const { return data_; }

 private:
  static constexpr std::int64_t kGrain = std::int64_t{1} << 14;

  std::optional<Scratch> copy_;
  const float* data_ = nullptr;
};

/// Where floats for a dense tensor of T may be written: its own memory, or a copy that finish() rounds to it.
template <typename T>
class FloatOutput {
 public:
  /// data() is null where `tensor` is undefined.
  explicit FloatOutput(const Tensor& tensor) : tensor_(tensor) {
    if (!tensor.defined()) return;
    if constexpr (is_float<T>) {
      data_ = tensor.data<float>();
    } else {
      copy_.emplace(tensor.numel());
      data_ = copy_->data();
    }
  }
  float* data() const { return data_; }
  void finish() const {
    if (!copy_) return;
    T* const to = tensor_.template data<T>();
    parallel_for(tensor_.numel(), kGrain,
                 [&](std::int64_t begin, std::int64_t end) { narrow(data_ + begin, end - begin, to + begin); });
  }

 private:
  static constexpr std::int64_t kGrain = std::int64_t{1} << 14;

  Tensor tensor_;
  std::optional<Scratch> copy_;
  float* data_ = nullptr;
};

}  // namespace tandem::kernels::cpu

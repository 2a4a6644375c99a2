// Half-precision operands of kernels that take floats: copies in workspace memory, for what is small.
#pragma once

#include "core/parallel.h"
#include "kernels/cast/float_runs.h"
#include "kernels/gemm/scratch.h"

#include <optional>

namespace tandem::kernels::cpu {

/// Floats for a dense tensor of T: where its elements lie, or memory of their number, not filled.
template <typename T>
class FloatMemory {
 public:
  /// data() is null where `tensor` is undefined.
  explicit FloatMemory(const Tensor& tensor) : tensor_(tensor) {
    if (!tensor.defined()) return;
    if constexpr (is_float<T>) {
      data_ = tensor.data<float>();
    } else {
      copy_.emplace(tensor.numel());
      data_ = copy_->data();
    }
  }
  float* data() const { return data_; }

 protected:
  /// Calls visit(elements, floats, count) for runs of a copy's elements.
  template <typename Visit>
  void for_each_run(Visit&& visit) const {
    constexpr std::int64_t kGrain = std::int64_t{1} << 14;
    if (!copy_) return;
    T* const elements = tensor_.template data<T>();
    parallel_for(tensor_.numel(), kGrain,
                 [&](std::int64_t begin, std::int64_t end) { visit(elements + begin, data_ + begin, end - begin); });
  }

 private:
  Tensor tensor_;
  std::optional<Scratch> copy_;
  float* data_ = nullptr;
};

/// The elements of a dense tensor as floats: its own, or a widened copy that lives as long as this object.
template <typename T>
class FloatInput : FloatMemory<T> {
 public:
  explicit FloatInput(const Tensor& tensor) : FloatMemory<T>(tensor) {
    this->for_each_run([](const T* elements, float* floats, std::int64_t count) { widen(elements, count, floats); });
  }
  const float* data() const { return FloatMemory<T>::data(); }
};

/// Where floats for a dense tensor may be written: its own memory, or a copy that finish() rounds to it.
template <typename T>
class FloatOutput : public FloatMemory<T> {
 public:
  using FloatMemory<T>::FloatMemory;
  void finish() const {
    this->for_each_run([](T* elements, const float* floats, std::int64_t count) { narrow(floats, count, elements); });
  }
};

}  // namespace tandem::kernels::cpu

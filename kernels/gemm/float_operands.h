// Half-precision operands of kernels that take floats: copies in workspace memory, for what is small.
#pragma once

#include "tandem/core/out.h"
#include "tandem/core/parallel.h"
#include "tandem/kernels/cast/float_runs.h"
#include "tandem/kernels/gemm/scratch.h"

namespace tandem::kernels::cpu {

/// Elements that are worth a thread.
constexpr std::int64_t kFloatsPerPart = std::int64_t{1} << 14;

/// The elements of a dense tensor as floats: its own, or a widened copy that lives as long as this object.
template <typename T>
class FloatInput {
 public:
  /// data() is null where `tensor` is undefined.
  explicit FloatInput(const Tensor& tensor) {
    if (!tensor.defined()) return;
    if constexpr (is_float<T>) {
      data_ = tensor.data<float>();
    } else {
      copy_ = Scratch(tensor.numel());
      const T* const elements = tensor.data<T>();
      float* const floats = copy_.data();
      parallel_for(tensor.numel(), kFloatsPerPart,
                   [&](std::int64_t begin, std::int64_t end) { widen(elements + begin, end - begin, floats + begin); });
      data_ = floats;
    }
  }
  const float* data() const { return data_; }

 private:
  Scratch copy_;
  const float* data_ = nullptr;
};

/// Where floats for a dense tensor may be written: its own memory, or a copy that finish() rounds to it.
template <typename T>
class FloatOutput {
 public:
  /// data() is null where `out` is undefined.
  explicit FloatOutput(const Out& out) : out_(out) {
    if (!out.defined()) return;
    if constexpr (is_float<T>) {
      data_ = out.data<float>();
    } else {
      copy_ = Scratch(out.numel());
      data_ = copy_.data();
    }
  }
  float* data() const { return data_; }

  void finish() const {
    if (!copy_.data()) return;
    T* const elements = out_.data<T>();
    parallel_for(out_.numel(), kFloatsPerPart, [&](std::int64_t begin, std::int64_t end) {
      round_floats(data_ + begin, end - begin, elements + begin);
    });
  }

 private:
  Out out_;
  Scratch copy_;
  float* data_ = nullptr;
};

}  // namespace tandem::kernels::cpu

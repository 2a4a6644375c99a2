// What the optimizer kernels on the CPU share: a parameter of any floating dtype, its gradient and its master, updated
// by one loop over f32 or f64.
#pragma once

#include "tandem/core/out.h"
#include "tandem/kernels/cast/float_runs.h"
#include "tandem/kernels/optimizer/tensor_list.h"

#include <array>

namespace tandem::kernels::detail {

/// A half parameter: `step` works on its master where there is one, else on a widened copy; either is rounded back.
template <typename T, typename Step>
void step_half(const UpdateTensors& item, std::int64_t begin, std::int64_t end, Step&& step) {
  std::array<float, cpu::kBlock> values, gradients;
  T* const parameter = item.parameter.data<T>();
  float* const master = item.master.defined() ? item.master.data<float>() : nullptr;
  cpu::for_each_block(end - begin, [&](std::int64_t offset, std::int64_t count) {
    const std::int64_t at = begin + offset;
    const float* gradient = gradients.data();
    if (item.gradient.dtype() == DType::f32) {
      gradient = item.gradient.data<float>() + at;
    } else {
      cpu::widen(item.gradient.data<T>() + at, count, gradients.data());
    }
    if (master == nullptr) cpu::widen(parameter + at, count, values.data());
    float* const value = master == nullptr ? values.data() : master + at;
    step(value, gradient, at, count);
    cpu::round_floats(value, count, parameter + at);
  });
}

/// Calls step(S* value, const S* gradient, first, count), S f32 or f64, for runs that together are the elements
/// [begin, end) of an item; `first` is the number of the run's first element. What `step` leaves in `value` is the new
/// parameter, and master.
template <typename Step>
void step_elements(const UpdateTensors& item, std::int64_t begin, std::int64_t end, Step&& step) {
  dispatch_floating(item.parameter.dtype(), "optimizer step", [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_same_v<T, compute_t<T>>) {
      step(item.parameter.data<T>() + begin, item.gradient.data<T>() + begin, begin, end - begin);
    } else {
      step_half<T>(item, begin, end, step);
    }
  });
}

/// Where the run's part of a state tensor begins; null for absent state.
template <typename S>
S* state_at(const Out& state, std::int64_t first) {
  return state.defined() ? state.data<S>() + first : nullptr;
}

}  // namespace tandem::kernels::detail

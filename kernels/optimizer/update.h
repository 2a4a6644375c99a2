// What the optimizer kernels on the CPU share: a parameter of any floating dtype, its gradient and its master, updated
// by one loop over f32 or f64.
#pragma once

#include "kernels/optimizer/tensor_list.h"

#include <array>

namespace tandem::kernels::detail {

/// Elements of half parameters that are widened, updated and rounded at a time: their floats stay in the L1 cache.
constexpr std::int64_t kBlockElements = 512;

template <typename T>
const float* widened(const T* from, std::int64_t count, std::array<float, kBlockElements>& to) {
  for (std::int64_t i = 0; i < count; ++i) to[static_cast<std::size_t>(i)] = static_cast<float>(from[i]);
  return to.data();
}

/// A half parameter: `step` works on its master where there is one, else on a widened copy; either is rounded back.
template <typename T, typename Step>
void step_half(const UpdateTensors& item, std::int64_t begin, std::int64_t end, Step&& step) {
  std::array<float, kBlockElements> values, gradients;
  T* const parameter = item.parameter.data<T>();
  float* const master = item.master.defined() ? item.master.data<float>() : nullptr;
  for (std::int64_t at = begin; at < end; at += kBlockElements) {
    const std::int64_t count = std::min(kBlockElements, end - at);
    const float* gradient = nullptr;
    if (item.gradient.dtype() == DType::f32) {
      gradient = item.gradient.data<float>() + at;
    } else {
      gradient = widened(item.gradient.data<T>() + at, count, gradients);
    }
    if (master == nullptr) widened(parameter + at, count, values);
    float* const value = master == nullptr ? values.data() : master + at;
    step(value, gradient, at, count);
    for (std::int64_t i = 0; i < count; ++i) parameter[at + i] = T(value[i]);
  }
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
S* state_at(const Tensor& state, std::int64_t first) {
  return state.defined() ? state.data<S>() + first : nullptr;
}

}  // namespace tandem::kernels::detail

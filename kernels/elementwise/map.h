// out = f(a) and out = f(a, b) over tensors: the bodies shared by the element-wise kernels, their checks included.
#pragma once

#include "kernels/elementwise/plain_loop.h"
#include "kernels/elementwise/strided_loop.h"

#include <string_view>

namespace tandem::kernels {

/// Checks that `input` can be read as an operand of the element-wise `op` that writes `out`, and `out` be written.
void check_elementwise(std::string_view op, const Tensor& input, const Tensor& out);

/// True if the vectorised loops take this dtype and device.
bool map_supports(const Tensor& out);

namespace reference {

template <typename Function>
void map(std::string_view op, const Tensor& a, const Tensor& out, Function&& function) {
  dispatch_floating(out.dtype(), op, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = compute_t<T>;
    for (std::int64_t i = 0; i < out.numel(); ++i) {
      const C value = static_cast<C>(a.data<T>()[offset_of(i, a.shape(), a.strides())]);
      out.data<T>()[offset_of(i, out.shape(), out.strides())] = static_cast<T>(function(value));
    }
  });
}

template <typename Function>
void map(std::string_view op, const Tensor& a, const Tensor& b, const Tensor& out, Function&& function) {
  dispatch_floating(out.dtype(), op, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = compute_t<T>;
    for (std::int64_t i = 0; i < out.numel(); ++i) {
      const C left = static_cast<C>(a.data<T>()[offset_of(i, a.shape(), a.strides())]);
      const C right = static_cast<C>(b.data<T>()[offset_of(i, b.shape(), b.strides())]);
      out.data<T>()[offset_of(i, out.shape(), out.strides())] = static_cast<T>(function(left, right));
    }
  });
}

}  // namespace reference

namespace cpu {

/// f32, any strides; a dense operand triple is one run, which the compiler vectorises.
template <typename Function>
void map(const Tensor& a, const Tensor& out, Function&& function) {
  const StridedLoop<2> loop(out.shape(), {out.strides(), a.strides()});
  float* const to = out.data<float>();
  const float* const from = a.data<float>();
  const auto [to_step, from_step] = loop.inner_strides();
  loop.parallel_runs(
      [&, to_step = to_step, from_step = from_step](const std::array<std::int64_t, 2>& at, std::int64_t length) {
        float* const y = to + at[0];
        const float* const x = from + at[1];
        if (to_step == 1 && from_step == 1) {
          for (std::int64_t i = 0; i < length; ++i) y[i] = function(x[i]);
        } else {
          for (std::int64_t i = 0; i < length; ++i) y[i * to_step] = function(x[i * from_step]);
        }
      });
}

template <typename Function>
void map(const Tensor& a, const Tensor& b, const Tensor& out, Function&& function) {
  const StridedLoop<3> loop(out.shape(), {out.strides(), a.strides(), b.strides()});
  float* const to = out.data<float>();
  const float* const from_a = a.data<float>();
  const float* const from_b = b.data<float>();
  const std::array<std::int64_t, 3> step = loop.inner_strides();
  loop.parallel_runs([&](const std::array<std::int64_t, 3>& at, std::int64_t length) {
    float* const y = to + at[0];
    const float* const left = from_a + at[1];
    const float* const right = from_b + at[2];
    if (step == std::array<std::int64_t, 3>{1, 1, 1}) {
      for (std::int64_t i = 0; i < length; ++i) y[i] = function(left[i], right[i]);
    } else if (step == std::array<std::int64_t, 3>{1, 1, 0}) {
      const float value = *right;
      for (std::int64_t i = 0; i < length; ++i) y[i] = function(left[i], value);
    } else if (step == std::array<std::int64_t, 3>{1, 0, 1}) {
      const float value = *left;
      for (std::int64_t i = 0; i < length; ++i) y[i] = function(value, right[i]);
    } else {
      for (std::int64_t i = 0; i < length; ++i) y[i * step[0]] = function(left[i * step[1]], right[i * step[2]]);
    }
  });
}

}  // namespace cpu

}  // namespace tandem::kernels

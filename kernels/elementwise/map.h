// out = f(a) and out = f(a, b) over tensors: the bodies shared by the element-wise kernels, their checks included.
#pragma once

#include "tandem/core/out.h"
#include "tandem/kernels/cast/float_runs.h"
#include "tandem/kernels/elementwise/plain_loop.h"
#include "tandem/kernels/elementwise/strided_loop.h"

#include <string_view>

namespace tandem::kernels {

/// Checks that `input` can be read as an operand of the element-wise `op` that writes `out`, and `out` be written:
/// shapes, dtypes, devices and memory.
void check_same_elements(std::string_view op, const Tensor& input, const Tensor& out);

/// Checks that both share no memory, or are the same elements.
void check_overlap(std::string_view op, const Tensor& input, const Tensor& out);

/// The same as check_same_elements() for an `op` that computes: the dtype must be a floating one.
void check_elementwise(std::string_view op, const Tensor& input, const Tensor& out);

/// True if the vectorised loops take this dtype and device.
bool map_supports(const Tensor& out);

namespace reference {

/// out = function(in...), element by element, for tensors of T.
template <typename T, typename Function, typename... Tensors>
void map_each_of(const Out& out, Function&& function, const Tensors&... in) {
  using C = compute_t<T>;
  for (std::int64_t i = 0; i < out.numel(); ++i) {
    const C value = function(static_cast<C>(in.template data<T>()[offset_of(i, in.shape(), in.strides())])...);
    out.data<T>()[offset_of(i, out.shape(), out.strides())] = static_cast<T>(value);
  }
}

/// The same for one to three inputs of any floating dtype.
template <typename Function, typename... Tensors>
void map_each(std::string_view op, const Out& out, Function&& function, const Tensors&... in) {
  dispatch_floating(out.dtype(), op,
                    [&](auto tag) { map_each_of<typename decltype(tag)::type>(out, function, in...); });
}

template <typename Function>
void map(std::string_view op, const Tensor& a, const Out& out, Function&& function) {
  map_each(op, out, function, a);
}

template <typename Function>
void map(std::string_view op, const Tensor& a, const Tensor& b, const Out& out, Function&& function) {
  map_each(op, out, function, a, b);
}

template <typename Function>
void map(std::string_view op, const Tensor& a, const Tensor& b, const Tensor& c, const Out& out, Function&& function) {
  map_each(op, out, function, a, b, c);
}

}  // namespace reference

namespace cpu {

namespace detail {

/// y[i] = function(x[i]) for one run.
template <typename Function>
void map_run(const float* x, std::int64_t x_step, float* y, std::int64_t y_step, std::int64_t length,
             Function&& function) {
  if (y_step == 1 && x_step == 1) {
    for (std::int64_t i = 0; i < length; ++i) y[i] = function(x[i]);
  } else {
    for (std::int64_t i = 0; i < length; ++i) y[i * y_step] = function(x[i * x_step]);
  }
}

/// The same for half types, in float, block by block.
template <typename T, typename Function>
void map_run(const T* x, std::int64_t x_step, T* y, std::int64_t y_step, std::int64_t length, Function&& function) {
  for_each_block(length, [&](std::int64_t at, std::int64_t count) {
    alignas(64) float values[kBlock];
    widen(x + at * x_step, x_step, count, values);
    for (std::int64_t i = 0; i < count; ++i) values[i] = function(values[i]);
    round_floats(values, count, y + at * y_step, y_step);
  });
}

/// y[i] = function(a[i], b[i]) for one run; steps of y, a and b.
template <typename Function>
void map_run(const float* a, const float* b, float* y, const std::array<std::int64_t, 3>& step, std::int64_t length,
             Function&& function) {
  if (step == std::array<std::int64_t, 3>{1, 1, 1}) {
    for (std::int64_t i = 0; i < length; ++i) y[i] = function(a[i], b[i]);
  } else if (step == std::array<std::int64_t, 3>{1, 1, 0}) {
    const float value = *b;
    for (std::int64_t i = 0; i < length; ++i) y[i] = function(a[i], value);
  } else if (step == std::array<std::int64_t, 3>{1, 0, 1}) {
    const float value = *a;
    for (std::int64_t i = 0; i < length; ++i) y[i] = function(value, b[i]);
  } else {
    for (std::int64_t i = 0; i < length; ++i) y[i * step[0]] = function(a[i * step[1]], b[i * step[2]]);
  }
}

template <typename T, typename Function>
void map_run(const T* a, const T* b, T* y, const std::array<std::int64_t, 3>& step, std::int64_t length,
             Function&& function) {
  for_each_block(length, [&](std::int64_t at, std::int64_t count) {
    alignas(64) float left[kBlock], right[kBlock];
    widen(a + at * step[1], step[1], count, left);
    widen(b + at * step[2], step[2], count, right);
    for (std::int64_t i = 0; i < count; ++i) left[i] = function(left[i], right[i]);
    round_floats(left, count, y + at * step[0], step[0]);
  });
}

}  // namespace detail

/// f32, f16 and bf16, computed in float; any strides. Dense operands are one run, which the compiler vectorises.
template <typename Function>
void map(const Tensor& a, const Out& out, Function&& function) {
  const StridedLoop<2> loop(out.shape(), {out.strides(), a.strides()});
  const std::int64_t to_step = loop.inner_strides()[0], from_step = loop.inner_strides()[1];
  dispatch_float(out.dtype(), "map", [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* const to = out.data<T>();
    const T* const from = a.data<T>();
    loop.parallel_runs([&](const std::array<std::int64_t, 2>& at, std::int64_t length) {
      detail::map_run(from + at[1], from_step, to + at[0], to_step, length, function);
    });
  });
}

template <typename Function>
void map(const Tensor& a, const Tensor& b, const Out& out, Function&& function) {
  const StridedLoop<3> loop(out.shape(), {out.strides(), a.strides(), b.strides()});
  dispatch_float(out.dtype(), "map", [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* const to = out.data<T>();
    const T* const from_a = a.data<T>();
    const T* const from_b = b.data<T>();
    loop.parallel_runs([&](const std::array<std::int64_t, 3>& at, std::int64_t length) {
      detail::map_run(from_a + at[1], from_b + at[2], to + at[0], loop.inner_strides(), length, function);
    });
  });
}

}  // namespace cpu

}  // namespace tandem::kernels

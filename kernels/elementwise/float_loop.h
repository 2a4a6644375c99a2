// Loops over tensors by functions of dense floats, which are compiled once for all dtypes and strides.
#pragma once

#include "tandem/core/out.h"
#include "tandem/kernels/cast/float_runs.h"
#include "tandem/kernels/elementwise/strided_loop.h"

#include <array>

namespace tandem::kernels::cpu {

/// Dense floats that a function reads.
template <std::size_t kInputs>
using FloatRuns = std::array<const float*, kInputs>;

namespace detail {

/// Elements of a run as dense floats: those in place, else a widened copy in `buffer`.
template <typename T>
const float* dense_floats(const T* from, std::int64_t step, std::int64_t count, float* buffer) {
  if constexpr (is_float<T>) {
    if (step == 1) return from;
  }
  widen(from, step, count, buffer);
  return buffer;
}

/// Part of a run in blocks, because operands are no dense floats. `out` is dense.
template <typename T, std::size_t kInputs, typename Function>
void float_run(const std::array<const T*, kInputs>& in, T* out, const std::array<std::int64_t, kInputs + 1>& steps,
               std::int64_t length, const Function& function) {
  alignas(64) float buffers[kInputs + 1][kBlock];
  for_each_block(length, [&](std::int64_t at, std::int64_t count) {
    FloatRuns<kInputs> runs{};
    for (std::size_t k = 0; k < kInputs; ++k)
      runs[k] = dense_floats(in[k] + at * steps[k + 1], steps[k + 1], count, buffers[k]);
    if constexpr (is_float<T>) {
      function(runs, out + at, count);
    } else {
      function(runs, buffers[kInputs], count);
      round_floats(buffers[kInputs], count, out + at);
    }
  });
}

}  // namespace detail

/// Calls function(inputs, out, count) on dense floats until all elements of `out` are made, by several threads: on the
/// tensors themselves where they are dense f32, else on blocks in the L1 cache. f32, f16 and bf16; inputs of any
/// strides, `out` dense.
template <std::size_t kInputs, typename Function>
void for_float_runs(const Out& out, const std::array<const Tensor*, kInputs>& in, const Function& function) {
  std::array<Strides, kInputs + 1> strides{out.strides()};
  for (std::size_t k = 0; k < kInputs; ++k) strides[k + 1] = in[k]->strides();
  const StridedLoop<kInputs + 1> loop(out.shape(), strides);
  const auto& steps = loop.inner_strides();
  dispatch_float(out.dtype(), "for_float_runs", [&](auto tag) {
    using T = typename decltype(tag)::type;
    loop.parallel_runs([&](const std::array<std::int64_t, kInputs + 1>& at, std::int64_t length) {
      std::array<const T*, kInputs> from{};
      for (std::size_t k = 0; k < kInputs; ++k) from[k] = in[k]->template data<T>() + at[k + 1];
      T* const to = out.data<T>() + at[0];
      if constexpr (is_float<T>) {
        const bool dense = std::all_of(steps.begin(), steps.end(), [](std::int64_t step) { return step == 1; });
        if (dense) return function(from, to, length);
      }
      detail::float_run(from, to, steps, length, function);
    });
  });
}

}  // namespace tandem::kernels::cpu

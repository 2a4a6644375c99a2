// Depthwise convolution over vectors of channels, any kernel, stride and dilation.
#include "tandem/kernels/conv/direct/depthwise.h"

#include "tandem/kernels/cast/half_vector.h"
#include "tandem/kernels/conv/sign_mask.h"
#include "tandem/kernels/gemm/scratch.h"
#include "tandem/kernels/gemm/tasks.h"

#include <algorithm>

namespace tandem::kernels::direct {
namespace {

using simd::kLanes;

constexpr std::int64_t kMostParts = 32;

/// Weights [channel][tap] as [tap][channel].
void turn_weights(const ConvGeometry& g, const float* w, float* to) {
  const std::int64_t taps = g.r * g.s;
  for (std::int64_t tap = 0; tap < taps; ++tap)
    for (std::int64_t c = 0; c < g.c; ++c) to[tap * g.c + c] = w[c * taps + tap];
}

/// Calls visit(tap, input pixel) for the taps of output (p, q) of one image that fall inside it.
template <typename Visit>
[[gnu::always_inline]] inline void for_inputs(const ConvGeometry& g, std::int64_t p, std::int64_t q, Visit&& visit) {
  for (std::int64_t r = 0; r < g.r; ++r)
    for (std::int64_t s = 0; s < g.s; ++s) {
      const std::int64_t row = p * g.stride_h - g.pad_h + r * g.dilation_h;
      const std::int64_t column = q * g.stride_w - g.pad_w + s * g.dilation_w;
      if (row >= 0 && row < g.h && column >= 0 && column < g.w) visit(r * g.s + s, row * g.w + column);
    }
}

/// Calls visit(tap, output pixel) for the outputs that input (row, column) of one image contributes to.
template <typename Visit>
[[gnu::always_inline]] inline void for_outputs(const ConvGeometry& g, std::int64_t row, std::int64_t column,
                                               Visit&& visit) {
  for (std::int64_t r = 0; r < g.r; ++r)
    for (std::int64_t s = 0; s < g.s; ++s) {
      const std::int64_t down = row + g.pad_h - r * g.dilation_h, across = column + g.pad_w - s * g.dilation_w;
      if (down < 0 || across < 0 || down % g.stride_h != 0 || across % g.stride_w != 0) continue;
      const std::int64_t p = down / g.stride_h, q = across / g.stride_w;
      if (p < g.p && q < g.q) visit(r * g.s + s, p * g.q + q);
    }
}

}  // namespace

template <typename T>
void depthwise_forward(const ConvGeometry& g, const T* x, const float* w, const ConvEpilogue& epilogue, T* y) {
  ConvEpilogue fused = epilogue;
  if (!simd::rows_have_whole_bytes(g.k)) fused.mask = nullptr;
  const Scratch weights(g.weight_numel());
  turn_weights(g, w, weights.data());
  for_each_task(g.n * g.p, [&](std::int64_t task, std::int64_t) {
    const T* image = x + task / g.p * g.h * g.w * g.c;
    for (std::int64_t q = 0; q < g.q; ++q)
      for (std::int64_t c = 0; c < g.c; c += kLanes) {
        const std::int64_t left = std::min<std::int64_t>(kLanes, g.c - c), element = (task * g.q + q) * g.c + c;
        simd::Vec sum{};
        for_inputs(g, task % g.p, q, [&](std::int64_t tap, std::int64_t pixel) {
          sum += simd::load_partial(image + pixel * g.c + c, left) *
                 simd::load_partial(weights.data() + tap * g.c + c, left);
        });
        if (fused.bias != nullptr) sum += simd::load_partial(fused.bias + c, left);
        if (fused.mask != nullptr) simd::store_bits(fused.mask, element, simd::stored_positive_bits<T>(sum));
        simd::store_partial(y + element, fused.relu ? simd::relu(sum) : sum, left);
      }
  });
  if (epilogue.mask != fused.mask) write_sign_mask(y, g.output_numel(), epilogue.mask);
}

template <typename T>
void depthwise_backward_input(const ConvGeometry& g, MaskedGradient<T> grad_y, const float* w, T* grad_x) {
  const DenseGradient<T> dense(grad_y, g, false);
  const Scratch weights(g.weight_numel());
  if (g.has_unit_stride()) {  // a forward convolution with the kernels rotated by 180 degrees
    const std::int64_t taps = g.r * g.s;
    for (std::int64_t i = 0; i < g.weight_numel(); ++i) weights.data()[i / taps * taps + taps - 1 - i % taps] = w[i];
    return depthwise_forward(backward_input_as_forward(g), dense.gradient.data, weights.data(), {}, grad_x);
  }
  turn_weights(g, w, weights.data());
  for_each_task(g.n * g.h, [&](std::int64_t task, std::int64_t) {
    const T* image = dense.gradient.data + task / g.h * g.p * g.q * g.k;
    for (std::int64_t column = 0; column < g.w; ++column)
      for (std::int64_t c = 0; c < g.c; c += kLanes) {
        const std::int64_t left = std::min<std::int64_t>(kLanes, g.c - c);
        simd::Vec sum{};
        for_outputs(g, task % g.h, column, [&](std::int64_t tap, std::int64_t pixel) {
          sum += simd::load_partial(image + pixel * g.k + c, left) *
                 simd::load_partial(weights.data() + tap * g.c + c, left);
        });
        simd::store_partial(grad_x + (task * g.w + column) * g.c + c, sum, left);
      }
  });
}

template <typename T>
void depthwise_backward_weight(const ConvGeometry& g, const T* x, MaskedGradient<T> grad_y, float* grad_w,
                               float* grad_bias) {
  const DenseGradient<T> dense(grad_y, g, false);
  const std::int64_t rows = g.n * g.p, parts = std::min(rows, kMostParts), part_floats = g.weight_numel();
  const Scratch sums(parts * part_floats);
  for_each_task(parts, [&](std::int64_t part, std::int64_t) {
    float* own = sums.data() + part * part_floats;
    std::fill_n(own, part_floats, 0.0f);
    for (std::int64_t row = rows * part / parts; row < rows * (part + 1) / parts; ++row) {
      const T* image = x + row / g.p * g.h * g.w * g.c;
      for (std::int64_t q = 0; q < g.q; ++q) {
        const T* gradient = dense.gradient.data + (row * g.q + q) * g.k;
        for_inputs(g, row % g.p, q, [&](std::int64_t tap, std::int64_t pixel) {
          for (std::int64_t c = 0; c < g.c; c += kLanes) {
            const std::int64_t left = g.c - c;
            float* to = own + tap * g.c + c;
            simd::store_partial(to,
                                simd::load_partial(to, left) + simd::load_partial(image + pixel * g.c + c, left) *
                                                                   simd::load_partial(gradient + c, left),
                                left);
          }
        });
      }
    }
  });
  const std::int64_t taps = g.r * g.s;
  for (std::int64_t c = 0; c < g.c; ++c)
    for (std::int64_t tap = 0; tap < taps; ++tap) {
      float sum = 0.0f;
      for (std::int64_t part = 0; part < parts; ++part) sum += sums.data()[part * part_floats + tap * g.c + c];
      grad_w[c * taps + tap] = sum;
    }
  if (grad_bias != nullptr) sum_rows(dense.gradient.data, rows * g.q, g.k, grad_bias);
}

template void depthwise_forward(const ConvGeometry&, const float*, const float*, const ConvEpilogue&, float*);
template void depthwise_forward(const ConvGeometry&, const Half*, const float*, const ConvEpilogue&, Half*);
template void depthwise_forward(const ConvGeometry&, const BFloat16*, const float*, const ConvEpilogue&, BFloat16*);
template void depthwise_backward_input(const ConvGeometry&, MaskedGradient<float>, const float*, float*);
template void depthwise_backward_input(const ConvGeometry&, MaskedGradient<Half>, const float*, Half*);
template void depthwise_backward_input(const ConvGeometry&, MaskedGradient<BFloat16>, const float*, BFloat16*);
template void depthwise_backward_weight(const ConvGeometry&, const float*, MaskedGradient<float>, float*, float*);
template void depthwise_backward_weight(const ConvGeometry&, const Half*, MaskedGradient<Half>, float*, float*);
template void depthwise_backward_weight(const ConvGeometry&, const BFloat16*, MaskedGradient<BFloat16>, float*, float*);

}  // namespace tandem::kernels::direct

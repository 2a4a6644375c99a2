// linear on the packed product, in float.
#include "tandem/core/parallel.h"
#include "tandem/kernels/gemm/float_operands.h"
#include "tandem/kernels/gemm/gemm_implementations.h"
#include "tandem/kernels/gemm/linear_implementations.h"

#include <algorithm>
#include <vector>

namespace tandem::kernels::cpu {
namespace {

constexpr std::int64_t kGrain = 16384;      // elements that are worth a thread
constexpr std::int64_t kRowsInFloat = 256;  // of a bias's gradient: more of them would lose digits

template <typename T>
MatrixView<T> view(const T* data, std::int64_t row_stride) {
  return {data, row_stride, 1};
}
template <typename T>
MatrixView<T> transposed(const T* data, std::int64_t row_stride) {
  return {data, 1, row_stride};
}

template <typename T>
void forward(const Tensor& x, const Tensor& weight, const Tensor& bias, bool relu, const Out& y) {
  const std::int64_t rows = x.size(0), inputs = x.size(1), outputs = weight.size(0);
  const FloatInput<T> biases(bias);
  const FloatOutput<T> sums(y);
  float* const out = sums.data();
  gemm(rows, outputs, inputs, view(x.data<T>(), inputs), transposed(weight.data<T>(), inputs), false, out, outputs);
  const float* add = biases.data();
  if (add != nullptr || relu)
    parallel_for(rows, kGrain / std::max<std::int64_t>(outputs, 1), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t m = begin; m < end; ++m)
        for (std::int64_t o = 0; o < outputs; ++o) {
          const float value = out[m * outputs + o] + (add != nullptr ? add[o] : 0.0f);
          out[m * outputs + o] = relu && value < 0.0f ? 0.0f : value;
        }
    });
  sums.finish();
}

/// The gradient but where y <= 0, in float; all of it where y is undefined.
template <typename T>
class GatedGradient {
 public:
  GatedGradient(const Tensor& grad_y, const Tensor& y) : own_(y.defined() || !is_float<T> ? grad_y.numel() : 0) {
    const T* const gradient = grad_y.data<T>();
    if constexpr (is_float<T>) data_ = gradient;
    if (is_float<T> && !y.defined()) return;
    const T* const gate = y.defined() ? y.data<T>() : nullptr;
    data_ = own_.data();
    parallel_for(grad_y.numel(), kGrain, [&](std::int64_t begin, std::int64_t end) {
      for_each_block(end - begin, [&](std::int64_t at, std::int64_t length) {
        float* const to = own_.data() + begin + at;
        widen(gradient + begin + at, length, to);
        if (gate == nullptr) return;
        float gates[kBlock];
        widen(gate + begin + at, length, gates);
        for (std::int64_t i = 0; i < length; ++i) to[i] = gates[i] <= 0.0f ? 0.0f : to[i];
      });
    });
  }
  const float* data() const { return data_; }

 private:
  Scratch own_;
  const float* data_ = nullptr;
};

template <typename T>
void backward(const Tensor& x, const Tensor& weight, const Tensor& y, const Tensor& grad_y, const Out& grad_x,
              const Out& grad_weight, const Out& grad_bias) {
  const std::int64_t rows = x.size(0), inputs = x.size(1), outputs = weight.size(0);
  const GatedGradient<T> gated(grad_y, y);
  const float* const gradient = gated.data();
  if (grad_bias.defined()) {
    const FloatOutput<T> bias_sums(grad_bias);
    float* const sums = bias_sums.data();
    parallel_for(outputs, kGrain / std::max<std::int64_t>(rows, 1), [&](std::int64_t begin, std::int64_t end) {
      std::vector<double> totals(static_cast<std::size_t>(end - begin));
      for (std::int64_t first = 0; first < rows; first += kRowsInFloat) {
        std::fill(sums + begin, sums + end, 0.0f);
        for (std::int64_t m = first; m < std::min(rows, first + kRowsInFloat); ++m)
          for (std::int64_t o = begin; o < end; ++o) sums[o] += gradient[m * outputs + o];
        for (std::int64_t o = begin; o < end; ++o)
          totals[static_cast<std::size_t>(o - begin)] += static_cast<double>(sums[o]);
      }
      for (std::int64_t o = begin; o < end; ++o)
        sums[o] = static_cast<float>(totals[static_cast<std::size_t>(o - begin)]);
    });
    bias_sums.finish();
  }
  if (grad_weight.defined()) {
    const FloatOutput<T> sums(grad_weight);
    gemm(outputs, inputs, rows, transposed(gradient, outputs), view(x.data<T>(), inputs), false, sums.data(), inputs);
    sums.finish();
  }
  if (grad_x.defined()) {
    const FloatOutput<T> sums(grad_x);
    gemm(rows, inputs, outputs, view(gradient, outputs), view(weight.data<T>(), inputs), false, sums.data(), inputs);
    sums.finish();
  }
}

}  // namespace

bool supports_linear(const Tensor& x) { return computes_in_float(x.dtype()); }

void linear_forward(const Tensor& x, const Tensor& weight, const Tensor& bias, bool relu, const Out& y) {
  dispatch_float(x.dtype(), "linear_forward",
                 [&](auto tag) { forward<typename decltype(tag)::type>(x, weight, bias, relu, y); });
}

void linear_backward(const Tensor& x, const Tensor& weight, const Tensor& y, const Tensor& grad_y, const Out& grad_x,
                     const Out& grad_weight, const Out& grad_bias) {
  dispatch_float(x.dtype(), "linear_backward", [&](auto tag) {
    backward<typename decltype(tag)::type>(x, weight, y, grad_y, grad_x, grad_weight, grad_bias);
  });
}

}  // namespace tandem::kernels::cpu

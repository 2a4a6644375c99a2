// linear on the packed f32 product.
#include "core/parallel.h"
#include "kernels/gemm/gemm.h"
#include "kernels/gemm/linear.h"
#include "kernels/gemm/scratch.h"

#include <algorithm>

namespace tandem::kernels::cpu {
namespace {

constexpr std::int64_t kGrain = 16384;  // elements that are worth a thread

MatrixView view(const float* data, std::int64_t row_stride) { return {data, row_stride, 1}; }
MatrixView transposed(const float* data, std::int64_t row_stride) { return {data, 1, row_stride}; }

}  // namespace

bool supports_linear(const Tensor& x) { return x.dtype() == DType::f32; }

void linear_forward(const Tensor& x, const Tensor& weight, const Tensor& bias, bool relu, const Tensor& y) {
  const std::int64_t rows = x.size(0), inputs = x.size(1), outputs = weight.size(0);
  float* out = y.data<float>();
  gemm(rows, outputs, inputs, view(x.data<float>(), inputs), transposed(weight.data<float>(), inputs), false, out,
       outputs);
  const float* add = bias.defined() ? bias.data<float>() : nullptr;
  if (add == nullptr && !relu) return;
  parallel_for(rows, kGrain / std::max<std::int64_t>(outputs, 1), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t m = begin; m < end; ++m)
      for (std::int64_t o = 0; o < outputs; ++o) {
        const float value = out[m * outputs + o] + (add != nullptr ? add[o] : 0.0f);
        out[m * outputs + o] = relu && value < 0.0f ? 0.0f : value;
      }
  });
}

void linear_backward(const Tensor& x, const Tensor& weight, const Tensor& y, const Tensor& grad_y, const Tensor& grad_x,
                     const Tensor& grad_weight, const Tensor& grad_bias) {
  const std::int64_t rows = x.size(0), inputs = x.size(1), outputs = weight.size(0);
  const float* gradient = grad_y.data<float>();
  const Scratch masked(y.defined() ? rows * outputs : 0);
  if (y.defined()) {
    const float* out = y.data<float>();
    parallel_for(rows * outputs, kGrain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) masked.data()[i] = out[i] > 0.0f ? gradient[i] : 0.0f;
    });
    gradient = masked.data();
  }
  if (grad_bias.defined())
    parallel_for(outputs, kGrain / std::max<std::int64_t>(rows, 1), [&](std::int64_t begin, std::int64_t end) {
      float* sums = grad_bias.data<float>();
      std::fill(sums + begin, sums + end, 0.0f);
      for (std::int64_t m = 0; m < rows; ++m)
        for (std::int64_t o = begin; o < end; ++o) sums[o] += gradient[m * outputs + o];
    });
  if (grad_weight.defined())
    gemm(outputs, inputs, rows, transposed(gradient, outputs), view(x.data<float>(), inputs), false,
         grad_weight.data<float>(), inputs);
  if (grad_x.defined())
    gemm(rows, inputs, outputs, view(gradient, outputs), view(weight.data<float>(), inputs), false,
         grad_x.data<float>(), inputs);
}

}  // namespace tandem::kernels::cpu

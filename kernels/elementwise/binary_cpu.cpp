// Functions of two tensors on the CPU: one vectorised loop each, threaded.
#include "tandem/kernels/activation/vector_math.h"
#include "tandem/kernels/elementwise/binary_functions.h"
#include "tandem/kernels/elementwise/binary_implementations.h"
#include "tandem/kernels/elementwise/float_loop.h"
#include "tandem/kernels/elementwise/map.h"

namespace tandem::kernels::cpu {

namespace {

template <typename Formulas>
void value_run(const FloatRuns<2>& in, float* out, std::int64_t count) {
  const float *const a = in[0], *const b = in[1];
  for (std::int64_t i = 0; i < count; ++i) out[i] = Formulas::template value<VectorMath>(a[i], b[i]);
}

template <typename Formulas>
void left_run(const FloatRuns<3>& in, float* grad, std::int64_t count) {
  const float *const a = in[0], *const b = in[1], *const grad_out = in[2];
  for (std::int64_t i = 0; i < count; ++i) grad[i] = Formulas::template left<VectorMath>(a[i], b[i], grad_out[i]);
}

template <typename Formulas>
void right_run(const FloatRuns<3>& in, float* grad, std::int64_t count) {
  const float *const a = in[0], *const b = in[1], *const grad_out = in[2];
  for (std::int64_t i = 0; i < count; ++i) grad[i] = Formulas::template right<VectorMath>(a[i], b[i], grad_out[i]);
}

}  // namespace

bool binary_supports(const Tensor& out) { return map_supports(out); }

void binary_forward(std::string_view, Binary function, const Tensor& a, const Tensor& b, const Out& out) {
  for_float_runs<2>(out, {&a, &b},
                    visit_binary(function, [](auto formulas) { return &value_run<decltype(formulas)>; }));
}

void binary_backward(std::string_view, Binary function, Side side, const Tensor& a, const Tensor& b,
                     const Tensor& grad_out, const Out& grad) {
  for_float_runs<3>(grad, {&a, &b, &grad_out}, visit_binary(function, [side](auto formulas) {
                      return side == Side::left ? &left_run<decltype(formulas)> : &right_run<decltype(formulas)>;
                    }));
}

}  // namespace tandem::kernels::cpu

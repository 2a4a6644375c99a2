// Functions of one tensor on the CPU: one vectorised loop each, threaded.
#include "tandem/kernels/activation/vector_math.h"
#include "tandem/kernels/elementwise/float_loop.h"
#include "tandem/kernels/elementwise/map.h"
#include "tandem/kernels/elementwise/unary_functions.h"
#include "tandem/kernels/elementwise/unary_implementations.h"

namespace tandem::kernels::cpu {

namespace {

template <typename Formulas>
void value_run(const FloatRuns<1>& in, float* y, std::int64_t count, const NumbersIn<float>& given) {
  const NumbersIn<float> numbers = given;  // which no store to y can change
  const float* const x = in[0];
  for (std::int64_t i = 0; i < count; ++i) y[i] = Formulas::template value<VectorMath>(x[i], numbers);
}

template <typename Formulas>
void gradient_run(const FloatRuns<2>& in, float* grad_x, std::int64_t count, const NumbersIn<float>& given) {
  const NumbersIn<float> numbers = given;
  const float *const kept = in[0], *const grad_y = in[1];
  for (std::int64_t i = 0; i < count; ++i)
    grad_x[i] = Formulas::template gradient<VectorMath>(kept[i], grad_y[i], numbers);
}

}  // namespace

bool unary_supports(const Tensor& out) { return map_supports(out); }

void unary_forward(std::string_view, Unary function, const Tensor& x, const Numbers& numbers, const Out& y) {
  const NumbersIn<float> floats(numbers);
  const auto run = visit_unary(function, [](auto formulas) { return &value_run<decltype(formulas)>; });
  for_float_runs<1>(y, {&x},
                    [&](const FloatRuns<1>& in, float* out, std::int64_t count) { run(in, out, count, floats); });
}

void unary_backward(std::string_view, Unary function, const Tensor& kept, const Tensor& grad_y, const Numbers& numbers,
                    const Out& grad_x) {
  const NumbersIn<float> floats(numbers);
  const auto run = visit_unary(function, [](auto formulas) { return &gradient_run<decltype(formulas)>; });
  for_float_runs<2>(grad_x, {&kept, &grad_y},
                    [&](const FloatRuns<2>& in, float* out, std::int64_t count) { run(in, out, count, floats); });
}

}  // namespace tandem::kernels::cpu

// Element-wise functions of a user's own on CUDA.
#include "tandem/autograd/elementwise.h"
#include "tandem/autograd/functions.h"
#include "tests/autograd/comparisons.h"
#include "tests/autograd/sine.h"
#include "tests/support/catch.h"
#include "tests/support/cuda_device.h"
#include "tests/support/error_of.h"

#include <cmath>
#include <functional>
#include <limits>
#include <utility>

using namespace tandem;
using namespace tandem::autograd;
using namespace tandem::test;

namespace {

/// sin(2 x) and its gradient for a gradient of 1, by both devices.
void check_sine(const Tensor& x, double tolerance) {
  for (const Device device : {Device{}, kGpu}) {
    const Tensor leaf = set_requires_grad(x.to(device).detach());
    const Tensor y = sine(leaf, 2.0f);
    CHECK(y.device() == device);
    CHECK(y.dtype() == x.dtype());
    backward(y, Tensor::full(x.shape(), 1.0, {.dtype = x.dtype(), .device = device}));
    const std::vector<double> values = y.to_vector<double>(), slopes = grad(leaf).to_vector<double>();
    const std::vector<double> at = x.to_vector<double>();
    for (std::size_t i = 0; i < at.size(); ++i) {
      CHECK(std::abs(values[i] - std::sin(2.0 * at[i])) <= tolerance);
      CHECK(std::abs(slopes[i] - 2.0 * std::cos(2.0 * at[i])) <= 2.0 * tolerance);
    }
  }
}

}  // namespace

TEST_CASE("functors in a .cu file compute and differentiate on the GPU as on the CPU", "[cuda]") {
  if (!has_gpu()) return;
  std::vector<float> numbers;
  for (int i = 0; i < 3 * 5 * 7; ++i) numbers.push_back(-3.0f + 0.0625f * static_cast<float>(i));
  const Tensor x = Tensor::from(numbers, {3, 5, 7});
  check_sine(x, 1e-6);
  check_sine(x.transpose(0, 2), 1e-6);
  check_sine(x.narrow(1, 1, 2, 2), 1e-6);
  check_sine(cast(x, DType::f16), 0x1p-11);
  check_sine(cast(x, DType::bf16), 0x1p-8);
}

TEST_CASE("pointwise functions give zeros, infinities, NaN, kinks and ties on CUDA what they give on the CPU",
          "[cuda]") {
  if (!has_gpu()) return;
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const Tensor x =
      Tensor::from(std::vector<float>{0.0f, -0.0f, 1.0f, -1.0f, 3.0f, -3.0f, 2.5f, -2.5f, 90.0f, -90.0f, 110.0f,
                                      -110.0f, 1e-40f, -1e-40f, 3e38f, kInfinity, -kInfinity, std::nanf("")},
                   {18});
  const std::vector<std::function<Tensor(const Tensor&)>> functions = {
      autograd::exp,
      autograd::expm1,
      autograd::log,
      autograd::log1p,
      [](const Tensor& t) { return softplus(clamp_min(t, -80.0)); },  // below, the CPU has 0 a little earlier
      [](const Tensor& t) { return pow(1.5, t); },
      [](const Tensor& t) { return clamp_max(t, 1.0); },
      autograd::sqrt,
      autograd::rsqrt,
      autograd::reciprocal,
      [](const Tensor& t) { return pow(t, 2); },
      autograd::abs,
      autograd::neg,
      autograd::tanh,
      autograd::sigmoid,
      autograd::hardswish,
      [](const Tensor& t) { return leaky_relu(t, 0.5); },
      [](const Tensor& t) { return clamp(t, -2.5, 3.0); },
      [](const Tensor& t) { return pow(t, 3); },
      [](const Tensor& t) { return pow(t, 1.5); },
      [](const Tensor& t) { return pow(t, -3); },
      [](const Tensor& t) { return pow(t, 0); },
      [](const Tensor& t) { return 2.0 / t; },
      [](const Tensor& t) { return t / 0.0; },
      [](const Tensor& t) { return pow(t, Tensor::full({}, 2.5, t.options())); },
      [](const Tensor& t) { return pow(Tensor::full({}, -1.5, t.options()), t); },
      [](const Tensor& t) { return pow(Tensor::zeros({}, t.options()), t); },
      [](const Tensor& t) { return maximum(t, Tensor::full({}, 1.0, t.options())); },
      [](const Tensor& t) { return minimum(Tensor::full({}, 1.0, t.options()), t); }};
  constexpr std::size_t kTanh = 13;
  constexpr float kDenormal = 3e-45f;
  for (std::size_t f = 0; f < functions.size(); ++f) {
    const auto results = [&](Device device) {
      const Tensor leaf = set_requires_grad(x.to(device).detach());
      const Tensor y = functions[f](leaf);
      backward(y, Tensor::full({18}, 1.0, {.device = device}));
      return std::pair{y.to_vector<float>(), grad(leaf).to_vector<float>()};
    };
    const auto here = results({}), there = results(kGpu);
    const auto check = [&](const char* what, const std::vector<float>& e, const std::vector<float>& a, float least) {
      for (std::size_t i = 0; i < a.size(); ++i) {
        INFO(what << " of function " << f << " at " << x.data<float>()[i] << ": " << a[i] << ", on the CPU " << e[i]);
        CHECK((std::isnan(e[i]) ? std::isnan(a[i])
                                : e[i] == a[i] || std::abs(a[i] - e[i]) <= 1e-6f * std::abs(e[i]) + least));
        if (e[i] == 0.0f && what[0] == 'v') CHECK(std::signbit(e[i]) == std::signbit(a[i]));
      }
    };
    // The last bit of y near 1 is 2^-24, and 1 - y^2 twice that off.
    const float of_slope = f == kTanh ? 0x1p-23f : kDenormal;
    check("value", here.first, there.first, kDenormal);
    check("slope", here.second, there.second, of_slope);
  }
}

TEST_CASE("comparisons on CUDA make masks of every dtype, stride and broadcast shape, and know NaN", "[cuda]") {
  if (!has_gpu()) return;
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::i64, DType::i32, DType::u8})
    check_comparisons(dtype, kGpu);
}

TEST_CASE("integers are compared and chosen on CUDA as what they are", "[cuda]") {
  if (!has_gpu()) return;
  check_comparisons_of_great_integers(kGpu);
  for (const DType dtype : {DType::i64, DType::i32, DType::u8}) check_where_of_integers(dtype, kGpu);
}

TEST_CASE("a function that was compiled for the CPU refuses a tensor on a GPU, and says what to do", "[cuda]") {
  if (!has_gpu()) return;
  const Tensor x = Tensor::zeros({2, 3}, {.device = kGpu});
  const auto call = [&] { elementwise("halved", x, [](auto v) { return v / 2; }, [](auto, auto g) { return g / 2; }); };
  CHECK_THAT(error_of(call),
             ContainsText("halved: f32[2, 3] is on cuda:0, but its function was compiled for the CPU; move the tensor "
                          "by to(Device{}), or call elementwise<OnDevice>() with __device__ functors in a .cu file"));
  CHECK(error_of(call).find('\n') == std::string::npos);
  CHECK_THAT(error_of([] { sine(Tensor::zeros({2}, {.dtype = DType::f64, .device = kGpu}), 1.0f); }),
             ContainsText("sine: CUDA kernels take f32, f16 and bf16, got f64; use the CPU for it"));
}

// Element-wise and activation kernels on CUDA against the references in f64.
#include "tandem/kernels/activation/gelu.h"
#include "tandem/kernels/activation/gelu_implementations.h"
#include "tandem/kernels/activation/relu.h"
#include "tandem/kernels/activation/relu_implementations.h"
#include "tandem/kernels/activation/silu.h"
#include "tandem/kernels/activation/silu_implementations.h"
#include "tandem/kernels/elementwise/add.h"
#include "tandem/kernels/elementwise/add_implementations.h"
#include "tandem/kernels/elementwise/mul.h"
#include "tandem/kernels/elementwise/mul_implementations.h"
#include "tandem/kernels/elementwise/scale.h"
#include "tandem/kernels/elementwise/scale_implementations.h"
#include "tests/kernels/cuda_support.h"
#include "tests/support/catch.h"

#include <functional>

using namespace tandem;
using namespace tandem::test;

namespace {

using Tensors = std::vector<Tensor>;

/// One function of one or two tensors, the same in f64, and the error that its formula may make in f32 (storing comes
/// on top) as a function of the inputs.
struct MapCase {
  std::string name;
  std::size_t inputs;
  bool exact_on_integers;
  std::function<void(const Tensors& in, const Tensor& out)> run, reference;
  std::function<double(double a, double b)> error;
};

constexpr double kUlp = 0x1p-23;

double cdf(double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }
double density(double x) { return std::exp(-0.5 * x * x) / std::sqrt(2.0 * M_PI); }
double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }

#define TANDEM_UNARY(op, ...) \
  [](const Tensors& in, const Tensor& out) { kernels::op(in[0], __VA_ARGS__ __VA_OPT__(, ) Out(out)); }
#define TANDEM_BINARY(op) [](const Tensors& in, const Tensor& out) { kernels::op(in[0], in[1], Out(out)); }

// erfc is within 4 ulp, exp within 2 (CUDA C++ Programming Guide, "Mathematical Functions"); a relative error of e in x
// becomes one of x^2 e in exp(-x^2 / 2) and nearly that in erfc.
const std::vector<MapCase>& map_cases() {
  static const std::vector<MapCase> cases = {
      {"add", 2, true, TANDEM_BINARY(add), TANDEM_BINARY(reference::add),
       [](double a, double b) { return kUlp * std::abs(a + b); }},
      {"mul", 2, true, TANDEM_BINARY(mul), TANDEM_BINARY(reference::mul),
       [](double a, double b) { return kUlp * std::abs(a * b); }},
      {"scale", 1, true, TANDEM_UNARY(scale, 1.5), TANDEM_UNARY(reference::scale, 1.5),
       [](double a, double) { return kUlp * std::abs(1.5 * a); }},
      {"relu_forward", 1, true, TANDEM_UNARY(relu_forward), TANDEM_UNARY(reference::relu_forward),
       [](double, double) { return 0.0; }},
      {"relu_backward", 2, true, TANDEM_BINARY(relu_backward), TANDEM_BINARY(reference::relu_backward),
       [](double, double) { return 0.0; }},
      {"gelu_forward", 1, false, TANDEM_UNARY(gelu_forward), TANDEM_UNARY(reference::gelu_forward),
       [](double x, double) { return (x * x + 8.0) * kUlp * std::abs(x * cdf(x)); }},
      {"gelu_backward", 2, false, TANDEM_BINARY(gelu_backward), TANDEM_BINARY(reference::gelu_backward),
       [](double x, double grad) {
         return (x * x + 8.0) * kUlp * std::abs(grad) * (cdf(x) + std::abs(x) * density(x));
       }},
      {"silu_forward", 1, false, TANDEM_UNARY(silu_forward), TANDEM_UNARY(reference::silu_forward),
       [](double x, double) { return 6.0 * kUlp * std::abs(x * sigmoid(x)); }},
      {"silu_backward", 2, false, TANDEM_BINARY(silu_backward), TANDEM_BINARY(reference::silu_backward),
       [](double x, double grad) { return 8.0 * kUlp * std::abs(grad) * sigmoid(x) * (1.0 + std::abs(x)); }},
  };
  return cases;
}

/// Runs a case into `out` (on the device, poisoned) and says what is wrong with the result, or nothing.
std::string check_map(const MapCase& map, const Tensors& in, const Tensor& out, bool exact) {
  Tensors there, wide_in;
  for (const Tensor& tensor : in) {
    there.push_back(view_on_gpu(tensor));
    wide_in.push_back(wide(tensor));
  }
  const Tensor expected = Tensor::empty(out.shape(), {.dtype = DType::f64});
  map.reference(wide_in, expected);
  map.run(there, out);
  const std::vector<double> a = wide_in.front().to_vector<double>(), b = wide_in.back().to_vector<double>();
  return first_outside(out, expected, [&](std::size_t i) { return exact ? 0.0 : map.error(a[i], b[i]); });
}

const Shape kShapes[] = {{}, {0, 3, 2, 2}, {1}, {7}, {16}, {1, 3, 5, 7}, {2, 33, 3, 1}, {3, 8, 2, 4}};

}  // namespace

TEST_CASE("element-wise kernels on CUDA equal the references on every shape and dtype", "[cuda][elementwise]") {
  if (!has_gpu()) return;
  for (const MapCase& map : map_cases()) {
    for (const DType dtype : kKernelDTypes) {
      for (const Shape& shape : kShapes) {
        for (const bool integers : {true, false}) {
          if (integers && !map.exact_on_integers) continue;
          INFO(map.name << ' ' << tandem::name_of(dtype) << ' ' << to_string(shape) << (integers ? " integers" : ""));
          Tensors in;
          for (std::size_t i = 0; i < map.inputs; ++i)
            in.push_back(random_values(shape, dtype, integers, 1 + static_cast<std::uint32_t>(i)));
          CHECK(check_map(map, in, poisoned_on_gpu(shape, dtype), integers) == "");
        }
      }
    }
  }
}

TEST_CASE("GELU and its slope on CUDA keep their relative accuracy far from 0", "[cuda][elementwise]") {
  if (!has_gpu()) return;
  std::vector<float> values;  // below -12 the results come near to subnormal numbers
  for (int i = -12 * 64; i <= 15 * 64; ++i) values.push_back(static_cast<float>(i) / 64.0f);
  for (const double tiny : {1e-3, 1e-10, 1e-30}) values.insert(values.end(), {float(tiny), float(-tiny)});
  const Tensor x = Tensor::from(values, {std::ssize(values)});
  for (const MapCase& map : map_cases()) {
    if (!map.name.starts_with("gelu")) continue;
    INFO(map.name);
    const Tensors in = map.inputs == 1 ? Tensors{x} : Tensors{x, Tensor::full(x.shape(), 1.0)};
    CHECK(check_map(map, in, poisoned_on_gpu(x.shape(), DType::f32), false) == "");
  }
}

TEST_CASE("element-wise kernels on CUDA take operands of any strides", "[cuda][elementwise]") {
  if (!has_gpu()) return;
  const Shape shape{2, 5, 3, 4};
  for (const MapCase& map : map_cases()) {
    for (const DType dtype : kKernelDTypes) {
      for (const Kind kind : kKinds) {
        INFO(map.name << ' ' << tandem::name_of(dtype) << ' ' << name_of(kind));
        Tensors in{random_view(kind, shape, dtype, false, 3)};
        if (map.inputs == 2) in.push_back(random_values(shape, dtype, false, 4));
        CHECK(check_map(map, in, poisoned_on_gpu(shape, dtype), false) == "");
        CHECK(check_map(map, in, poisoned_on_gpu(shape, dtype, Layout::row_major, true), false) == "");
        if (map.inputs == 1) continue;
        std::swap(in[0], in[1]);
        CHECK(check_map(map, in, poisoned_on_gpu(shape, dtype), false) == "");
      }
    }
  }
}

TEST_CASE("element-wise kernels on CUDA write over their inputs", "[cuda][elementwise]") {
  if (!has_gpu()) return;
  for (const MapCase& map : map_cases()) {
    for (const Kind kind : {Kind::dense, Kind::off_by_one}) {
      for (std::size_t which = 0; which < map.inputs; ++which) {
        INFO(map.name << ' ' << name_of(kind) << " over input " << which);
        Tensors in;
        for (std::size_t i = 0; i < map.inputs; ++i)
          in.push_back(
              view_on_gpu(random_view(kind, {2, 3, 5, 3}, DType::f32, false, 5 + static_cast<std::uint32_t>(i))));
        const Tensor out = poisoned_on_gpu(in[0].shape(), DType::f32);
        map.run(in, out);
        map.run(in, in[which]);
        CHECK(first_difference(in[which], out) == "");
      }
    }
  }
}

TEST_CASE("activations on CUDA keep NaN and take infinities and large numbers", "[cuda][elementwise]") {
  if (!has_gpu()) return;
  const float big = 3e38f;
  const Tensor x =
      Tensor::from(std::vector<float>{std::nanf(""), INFINITY, 88.8f, -88.8f, -100.0f, 0.0f, -0.0f, big}, {8});
  const Tensor grad = Tensor::full({8}, 1.0);
  for (const MapCase& map : map_cases()) {
    if (map.name.find("elu") == std::string::npos && map.name.find("silu") == std::string::npos) continue;
    INFO(map.name);
    Tensors in{x};
    if (map.inputs == 2) in.push_back(grad);
    const Tensor out = poisoned_on_gpu({8}, DType::f32), plain = Tensor::empty({8});
    map.reference(in, plain);
    map.run({x.to(kGpu), grad.to(kGpu)}, out);
    const std::vector<float> a = out.to_vector<float>(), e = plain.to_vector<float>();
    for (std::size_t i = 0; i < a.size(); ++i) {
      INFO("x = " << x.data<float>()[i] << ": " << a[i] << ", expected " << e[i]);
      CHECK((std::isnan(e[i]) ? std::isnan(a[i]) : a[i] == e[i] || std::abs(a[i] - e[i]) <= 1e-4f * std::abs(e[i])));
    }
  }
}

TEST_CASE("element-wise kernels on CUDA go on where the grid ends", "[cuda][elementwise]") {
  if (!has_gpu()) return;
  constexpr std::int64_t kMostThreads = 132 * 16 * 256;
  const bool dense = GENERATE(true, false);
  const std::int64_t count = dense ? 4 * kMostThreads + 13 : kMostThreads + 77;
  const Tensor whole = Tensor::full({count + 1}, 2.0).to(kGpu), part = whole.narrow(0, dense ? 0 : 1, count);
  kernels::scale(part, 3.0, Out(part));
  CHECK(equal_bits(part, Tensor::full({count}, 6.0)));
}

TEST_CASE("element-wise kernels on CUDA give the same bits twice", "[cuda][elementwise]") {
  if (!has_gpu()) return;
  const Tensor x = random_values({2, 5, 7, 3}, DType::f16, false, 9).to(kGpu);
  const Tensor first = poisoned_on_gpu(x.shape(), DType::f16), second = poisoned_on_gpu(x.shape(), DType::f16);
  kernels::gelu_forward(x, Out(first));
  kernels::gelu_forward(x, Out(second));
  CHECK(equal_bits(first, second));
}

TEST_CASE("element-wise kernels on CUDA refuse f64 and mixed devices", "[cuda][elementwise]") {
  if (!has_gpu()) return;
  for (const MapCase& map : map_cases()) {
    const Tensor wide_there = Tensor::zeros({4}, {.dtype = DType::f64, .device = kGpu});
    CHECK_THAT(error_of([&] { map.run({wide_there, wide_there}, wide_there); }),
               ContainsText(map.name + ": CUDA kernels take f32, f16 and bf16, got f64"));
    const Tensor here = Tensor::zeros({4}), there = Tensor::zeros({4}, {.device = kGpu});
    CHECK_THAT(error_of([&] { map.run({here, there}, there); }), ContainsText(map.name + ": "));
    CHECK_THAT(error_of([&] { map.run({there, there}, here); }), ContainsText(map.name + ": "));
  }
}

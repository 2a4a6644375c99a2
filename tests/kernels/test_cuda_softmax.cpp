// Softmax kernels on the GPU against the reference: rows of a warp, of a block, and longer ones.
#include "tandem/kernels/activation/softmax.h"
#include "tandem/kernels/activation/softmax_implementations.h"
#include "tests/kernels/cuda_compare.h"
#include "tests/support/catch.h"

using namespace tandem;
using namespace tandem::test;
using kernels::SoftmaxResult;

namespace {

constexpr double kU = 0x1p-24;

const char* name_of(SoftmaxResult result) {
  return result == SoftmaxResult::probabilities ? "probabilities" : "logarithms";
}

Tensor forward(SoftmaxResult result, const Tensor& x, Place place = Place::dense) {
  const Tensor y = empty_at(place, x.shape(), DType::f32);
  kernels::softmax_forward(result, x, Out(y));
  return y;
}

}  // namespace

TEST_CASE("softmax on the GPU agrees with the reference in f64", "[cuda][softmax]") {
  if (!has_gpu()) return;
  const PoisonScope poison;
  for (const Shape& shape :
       {Shape{1, 1}, Shape{5, 10}, Shape{37, 33}, Shape{3, 128}, Shape{4, 129}, Shape{2, 1031}, Shape{2, 3000}}) {
    for (const DType dtype : kKernelDtypes) {
      for (const SoftmaxResult result : {SoftmaxResult::probabilities, SoftmaxResult::logarithms}) {
        for (const Place place : {Place::dense, Place::unaligned}) {
          if (place != Place::dense && dtype != DType::f32) continue;
          INFO(name_of(result) << " of " << to_string(shape) << ", " << tandem::name_of(dtype) << ", "
                               << test::name_of(place));
          const Tensor x = values_of(shape, dtype, false, 1, 3.0), grad = values_of(shape, DType::f32, false, 2);
          const Tensor exact = wide_like(x), exact_gradient = wide_like(x);
          kernels::reference::softmax_forward(result, wide(x), Out(exact));
          kernels::reference::softmax_backward(result, exact, wide(grad), Out(exact_gradient));
          const Tensor y = forward(result, put(x, place), place), grad_x = empty_at(place, shape, dtype);
          kernels::softmax_backward(result, y, put(grad, place), Out(grad_x));
          // Exponents of up to 30, rounded; a few roundings of exp and log; and of a sum over a row, in which each
          // thread adds up every 32nd element or fewer.
          const double terms = 40.0 + static_cast<double>(shape[1]) / 32.0;
          const std::vector<double> values = exact.to_vector<double>(), gradients = grad.to_vector<double>(),
                                    exact_gradients = exact_gradient.to_vector<double>();
          const bool probabilities = result == SoftmaxResult::probabilities;
          CHECK(first_outside(y, exact, [&](std::size_t i) {
                  return 2.0 * terms * kU * (probabilities ? values[i] : 1.0) + 0x1p-149;
                }) == "");
          const double sum = probabilities ? 5.0 : 5.0 * std::sqrt(static_cast<double>(shape[1]));
          CHECK(first_outside(grad_x, exact_gradient, [&](std::size_t i) {
                  const double p = probabilities ? values[i] : std::exp(values[i]);
                  return 4.0 * terms * kU * (p * sum + std::abs(gradients[i]) * (probabilities ? p : 1.0)) +
                         roundoff(dtype) * std::abs(exact_gradients[i]) + 0x1p-24 * roundoff(dtype) * 0x1p10;
                }) == "");
        }
      }
    }
  }
}

TEST_CASE("softmax on the GPU: more rows than the grid takes at once", "[cuda][softmax]") {
  if (!has_gpu()) return;
  const std::int64_t columns = GENERATE(4, 160), rows = columns == 4 ? 132 * 8 * 8 + 3 : 132 * 8 + 3;
  const Tensor x = put(Tensor::full({rows, columns}, 3.0, {.dtype = DType::bf16}));
  const Tensor y = forward(SoftmaxResult::probabilities, x),
               grad_x = empty_at(Place::dense, {rows, columns}, DType::f32);
  kernels::softmax_backward(SoftmaxResult::probabilities, y, y, Out(grad_x));
  const auto expected = static_cast<float>(1.0 / static_cast<double>(columns));
  const std::vector<float> values = y.to_vector<float>(), gradients = grad_x.to_vector<float>();
  CHECK(std::all_of(values.begin(), values.end(), [=](float value) { return value == expected; }));
  CHECK(std::all_of(gradients.begin(), gradients.end(), [](float value) { return std::abs(value) <= 0x1p-24f; }));
}

TEST_CASE("softmax on the GPU: masked elements, and rows that become NaN", "[cuda][softmax]") {
  if (!has_gpu()) return;
  for (const std::int64_t columns : {4, 300}) {
    const Tensor x = Tensor::full({4, columns}, -INFINITY);
    x.narrow(1, 0, 2).copy_from(Tensor::from<float>({1e4f, 1e4f, 0, NAN, 0, INFINITY, -INFINITY, -INFINITY}, {4, 2}));
    const Tensor p = forward(SoftmaxResult::probabilities, put(x)).to(Device{}),
                 log_p = forward(SoftmaxResult::logarithms, put(x)).to(Device{});
    const std::vector<float> first = p.select(0, 0).to_vector<float>(), logs = log_p.select(0, 0).to_vector<float>();
    CHECK((first[0] == 0.5f && first[1] == 0.5f && first[2] == 0.0f));
    CHECK((std::abs(logs[0] + std::log(2.0f)) <= 0x1p-23f && logs[2] == -INFINITY));
    for (const std::int64_t row : {1, 2, 3}) {
      CHECK(std::isnan(p.select(0, row).to_vector<float>().front()));
      CHECK(std::isnan(log_p.select(0, row).to_vector<float>().back()));
    }
  }
}

TEST_CASE("softmax on the GPU refuses f64 and mixed devices", "[cuda][softmax]") {
  if (!has_gpu()) return;
  const TensorOptions f64{.dtype = DType::f64, .device = kGpu};
  const Tensor wide_x = Tensor::zeros({2, 3}, f64), x = put(Tensor::zeros({2, 3}));
  CHECK_THAT(error_of([&] { kernels::softmax_forward(SoftmaxResult::logarithms, wide_x, Out(wide_x)); }),
             ContainsText("softmax_forward: CUDA kernels take f32, f16 and bf16, got f64"));
  CHECK_THAT(error_of([&] { kernels::softmax_backward(SoftmaxResult::logarithms, wide_x, wide_x, Out(wide_x)); }),
             ContainsText("CUDA kernels take f32, f16 and bf16, got f64"));
  CHECK_THAT(error_of([&] { kernels::softmax_forward(SoftmaxResult::logarithms, x, Out(Tensor::zeros({2, 3}))); }),
             ContainsText("move one of them"));
}

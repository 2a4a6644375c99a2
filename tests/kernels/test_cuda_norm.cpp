// Batch normalisation kernels on the GPU against the reference.
#include "tandem/kernels/activation/gelu.h"
#include "tandem/kernels/activation/silu.h"
#include "tandem/kernels/norm/batch_norm.h"
#include "tandem/kernels/norm/batch_norm_implementations.h"
#include "tests/kernels/cuda_compare.h"
#include "tests/support/catch.h"

#include <algorithm>

using namespace tandem;
using namespace tandem::test;
using kernels::Activation;
using kernels::BatchNormOptions;

namespace {

constexpr double kU = 0x1p-24;

/// All tensors of one step, forward and backward.
struct Step {
  Tensor weight, bias, running_mean, running_var, y, mean, inverse_std, grad_x, grad_weight, grad_bias;
};

/// `parameters`: dtype of the affine parameters, of their gradients and of the running statistics.
Step run(const Tensor& x, const Tensor& grad_y, const BatchNormOptions& options, DType parameters, Place place,
         bool reference = false) {
  const Shape channels{x.size(1)};
  const auto make = [&](double value, DType dtype) {
    const Tensor tensor = reference ? Tensor::empty(channels, {.dtype = dtype}) : empty_at(place, channels, dtype);
    tensor.fill(value);
    return tensor;
  };
  const auto like_x = [&] { return reference ? wide_like(x) : empty_at(place, x.shape(), x.dtype()); };
  const DType statistics = kernels::batch_norm_statistics_dtype(x.dtype());
  const double nan = std::nan("");
  const Step s{.weight = make(1.5, parameters),
               .bias = make(-0.25, parameters),
               .running_mean = make(2.0, parameters),
               .running_var = make(3.0, parameters),
               .y = like_x(),
               .mean = make(nan, statistics),
               .inverse_std = make(nan, statistics),
               .grad_x = like_x(),
               .grad_weight = make(nan, parameters),
               .grad_bias = make(nan, parameters)};
  const auto train = reference ? kernels::reference::batch_norm_forward_train : kernels::batch_norm_forward_train;
  const auto eval = reference ? kernels::reference::batch_norm_forward_eval : kernels::batch_norm_forward_eval;
  if (options.training) {
    train(x, s.weight, s.bias, Out(s.running_mean), Out(s.running_var), options, Out(s.y), Out(s.mean),
          Out(s.inverse_std));
  } else {
    eval(x, s.weight, s.bias, s.running_mean, s.running_var, options, Out(s.y), Out(s.mean), Out(s.inverse_std));
  }
  const auto backward = reference ? kernels::reference::batch_norm_backward : kernels::batch_norm_backward;
  backward(x, s.weight, s.bias, s.mean, s.inverse_std, options, grad_y, Out(s.grad_x), Out(s.grad_weight),
           Out(s.grad_bias));
  return s;
}

std::string outside(const Tensor& actual, const Tensor& expected, double bound) {
  const double u = roundoff(actual.dtype());
  const std::vector<double> values = expected.to_vector<double>();
  return first_outside(actual, expected, [&](std::size_t i) {
    return bound + (actual.dtype() == DType::f32 ? 0.0 : u * (std::abs(values[i]) + bound) + 0x1p-24);
  });
}

/// One step around `shift` on the GPU and by the reference in f64, with the bounds of tests/kernels/test_norm.cpp.
void check_step(const Shape& shape, DType dtype, Place place, const BatchNormOptions& options, double shift) {
  INFO("x " << to_string(shape) << " around " << shift << ", " << name_of(dtype) << ", " << name_of(place)
            << ", activation " << static_cast<int>(options.activation) << (options.training ? "" : ", evaluation"));
  const PoisonScope poison;
  const bool relu = options.activation == Activation::relu;
  const bool smooth = options.activation == Activation::gelu || options.activation == Activation::silu;
  const Tensor x = values_of(shape, dtype, false, 1, 1.0, shift), grad_y = values_of(shape, dtype, false, 2);
  const Step fast = run(put(x, place), put(grad_y, place), options, DType::f32, place);
  const Step exact = run(wide(x), wide(grad_y), options, DType::f64, place, true);
  const std::vector<double> stds = exact.inverse_std.to_vector<double>();
  const double inverse = std::max(1.0, *std::max_element(stds.begin(), stds.end()));
  const double size = std::abs(shift) + 6.0;
  const double mean_error = kU * size + 64 * kU;
  CHECK(outside(fast.mean, exact.mean, mean_error) == "");
  CHECK(outside(fast.inverse_std, exact.inverse_std, 128 * kU * inverse * inverse * inverse) == "");
  const double deviation = options.training ? 6.0 : size + 2.0;  // |x - mean|
  const double y_error = 1.5 * 1.5 * inverse * (mean_error + deviation * 130 * kU * inverse * inverse);
  const double z = 1.5 * deviation * inverse + 0.25;
  CHECK(outside(fast.y, exact.y, smooth ? 1.13 * y_error + 8 * z * kU : y_error) == "");
  CHECK(outside(fast.running_mean, exact.running_mean, 0.1 * mean_error + 2 * kU * size) == "");
  CHECK(outside(fast.running_var, exact.running_var, 0.1 * 256 * kU + 8 * kU) == "");
  const double rows = static_cast<double>(x.numel() / x.size(1)), xhat = deviation * inverse;
  const double flipped = relu ? 6.0 * (2.0 + rows * y_error) : 0.0;
  const double slope_error = smooth ? 6.0 * (0.8 * y_error + 16 * kU) : 0.0;
  const double sum_error = rows * (64 * 1.13 * kU + slope_error) + flipped;
  CHECK(outside(fast.grad_bias, exact.grad_bias, sum_error) == "");
  CHECK(outside(fast.grad_weight, exact.grad_weight, xhat * sum_error + rows * y_error) == "");
  if (relu) return;
  const double correction = 2.0 * (1.0 + xhat) * sum_error / rows;
  CHECK(outside(fast.grad_x, exact.grad_x,
                1.5 * 1.5 * inverse * (correction + 8.0 * 1.13 * y_error + 64 * kU + slope_error)) == "");
}

}  // namespace

// One channel, few rows, odd sizes, vectors of channels, several tiles of channels, several chunks of rows; matrices.
TEST_CASE("batch norm on the GPU agrees with the reference in f64, near zero and far from it", "[cuda][norm]") {
  if (!has_gpu()) return;
  for (const Shape& shape : {Shape{2, 1, 16, 16}, Shape{2, 5}, Shape{4, 3, 20, 20}, Shape{5, 33, 3, 3},
                             Shape{2, 8, 8, 8}, Shape{12, 130, 2, 2}, Shape{3, 520, 4, 4}, Shape{41, 64}}) {
    for (const DType dtype : kKernelDtypes) {
      for (const Place place : {Place::dense, Place::unaligned, Place::gaps}) {
        if (place == Place::gaps && dtype != DType::f32) continue;
        check_step(shape, dtype, place, {}, 0.0);
      }
    }
    check_step(shape, DType::f32, Place::dense, {}, 1000.0);
    check_step(shape, DType::f32, Place::dense, {.training = false}, 0.0);
    check_step(shape, DType::bf16, Place::unaligned, {.training = false}, 1.0);
    check_step(shape, DType::f32, Place::dense, {.activation = Activation::relu}, 0.0);
    for (const Activation activation : {Activation::gelu, Activation::silu}) {
      for (const DType dtype : kKernelDtypes) check_step(shape, dtype, Place::dense, {.activation = activation}, 0.0);
      check_step(shape, DType::f16, Place::unaligned, {.training = false, .activation = activation}, 0.0);
    }
  }
}

TEST_CASE("batch norm on the GPU: more rows than the blocks take at once", "[cuda][norm]") {
  if (!has_gpu()) return;
  check_step({9000, 63}, DType::f32, Place::dense, {}, 100.0);
}

TEST_CASE("batch norm on the GPU is not thrown off by a first value far from all others", "[cuda][norm]") {
  if (!has_gpu()) return;
  const Tensor x = values_of({8, 8, 6, 6}, DType::f32, false, 3);
  for (std::int64_t c = 0; c < 8; ++c) Out(x).data<float>()[c] = 1e4f;
  const Step exact = run(wide(x), wide(x), {}, DType::f64, Place::dense, true);
  const Step fast = run(put(x), put(x), {}, DType::f32, Place::dense);
  const std::vector<double> stds = exact.inverse_std.to_vector<double>();
  // Deviations of up to 1e4 are rounded, and their squares; relative errors of a few roundings remain.
  CHECK(first_outside(fast.inverse_std, exact.inverse_std, [&](std::size_t i) { return 16 * kU * stds[i]; }) == "");
}

TEST_CASE("batch norm on the GPU takes parameters and statistics of any floating dtype", "[cuda][norm]") {
  if (!has_gpu()) return;
  const Tensor x = put(values_of({4, 6, 3, 3}, DType::f16, false, 4)),
               grad_y = put(values_of({4, 6, 3, 3}, DType::f16, false, 5));
  for (const bool training : {true, false}) {
    const Step plain = run(x, grad_y, {.training = training}, DType::f64, Place::dense);
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
      INFO(name_of(dtype));
      const Step step = run(x, grad_y, {.training = training}, dtype, Place::gaps);
      CHECK(same_values(step.y, plain.y));
      CHECK(same_values(step.grad_x, plain.grad_x));
      CHECK(outside(step.running_mean, plain.running_mean, 2 * kU * 3.0) == "");
      CHECK(outside(step.running_var, plain.running_var, 2 * kU * 3.0) == "");
      CHECK(outside(step.grad_weight, plain.grad_weight, 2 * kU * 200.0) == "");
      CHECK(outside(step.grad_bias, plain.grad_bias, 2 * kU * 200.0) == "");
    }
  }
}

TEST_CASE("batch norm on the GPU without parameters, running statistics or some gradients", "[cuda][norm]") {
  if (!has_gpu()) return;
  const PoisonScope poison;
  const Shape shape{3, 8, 4, 4}, channels{8};
  const Tensor x = values_of(shape, DType::f32, false, 6), grad_y = values_of(shape, DType::f32, false, 7), none;
  for (const bool training : {true, false}) {
    const BatchNormOptions options{.training = training};
    const Tensor mean = empty_at(Place::dense, channels, DType::f32),
                 inverse = empty_at(Place::dense, channels, DType::f32);
    const Tensor y = empty_at(Place::dense, shape, DType::f32), expected = wide_like(x);
    const TensorOptions kind{.dtype = DType::f64};
    const Tensor wide_mean = Tensor::empty(channels, kind), wide_inverse = Tensor::empty(channels, kind);
    if (training) {
      kernels::batch_norm_forward_train(put(x), none, none, {}, {}, options, Out(y), Out(mean), Out(inverse));
      kernels::reference::batch_norm_forward_train(wide(x), none, none, {}, {}, options, Out(expected), Out(wide_mean),
                                                   Out(wide_inverse));
      CHECK(outside(y, expected, 6.0 * 260 * kU) == "");
    } else {
      mean.fill(0.5);
      inverse.fill(2.0);
      wide_mean.fill(0.5);
      wide_inverse.fill(2.0);
    }
    const Tensor expected_x = wide_like(x), expected_bias = Tensor::empty(channels, kind);
    kernels::reference::batch_norm_backward(wide(x), none, none, wide_mean, wide_inverse, options, wide(grad_y),
                                            Out(expected_x), {}, Out(expected_bias));
    const Tensor grad_x = empty_at(Place::dense, shape, DType::f32),
                 grad_bias = empty_at(Place::dense, channels, DType::f32);
    kernels::batch_norm_backward(put(x), none, none, mean, inverse, options, put(grad_y), Out(grad_x), {}, {});
    CHECK(outside(grad_x, expected_x, 2.0 * 6.0 * 260 * kU) == "");
    kernels::batch_norm_backward(put(x), none, none, mean, inverse, options, put(grad_y), {}, {}, Out(grad_bias));
    CHECK(outside(grad_bias, expected_bias, 48 * 6.0 * kU) == "");
  }
}

TEST_CASE("batch norm on the GPU: an empty batch changes nothing, a constant channel becomes the bias",
          "[cuda][norm]") {
  if (!has_gpu()) return;
  const Tensor none = put(values_of({0, 3, 4, 4}, DType::f32, true, 1));
  const Step empty = run(none, none, {}, DType::f32, Place::dense);
  CHECK(empty.running_mean.to_vector<double>() == std::vector<double>(3, 2.0));
  CHECK(empty.grad_weight.to_vector<double>() == std::vector<double>(3, 0.0));
  const Tensor constant = Tensor::full({8, 5, 9, 9}, 1234.5, {.layout = Layout::channels_last, .device = kGpu});
  const Step step = run(constant, constant, {}, DType::f32, Place::dense);
  CHECK(step.y.to_vector<double>() == std::vector<double>(static_cast<std::size_t>(constant.numel()), -0.25));
}

TEST_CASE("fused ReLU on the GPU gives what ReLU behind gives, and the same bits twice", "[cuda][norm]") {
  if (!has_gpu()) return;
  const Shape shape{5, 12, 7, 7};
  const Tensor x = put(values_of(shape, DType::f32, false, 8)), grad_y = values_of(shape, DType::f32, false, 9);
  const Step fused = run(x, put(grad_y), {.activation = Activation::relu}, DType::f32, Place::dense);
  const Step plain = run(x, put(grad_y), {}, DType::f32, Place::dense);
  const std::vector<float> y = plain.y.to_vector<float>();
  std::vector<float> masked = grad_y.to_vector<float>(), positive = y;
  for (std::size_t i = 0; i < y.size(); ++i) {
    if (y[i] > 0.0f) continue;
    masked[i] = positive[i] = 0.0f;
  }
  CHECK(fused.y.to_vector<float>() == positive);
  const Step behind = run(x, put(Tensor::from(masked, shape, Layout::channels_last)), {}, DType::f32, Place::dense);
  CHECK(same_values(fused.grad_x, behind.grad_x));
  CHECK(same_values(fused.grad_weight, behind.grad_weight));
  CHECK(same_values(fused.grad_bias, behind.grad_bias));
  const Step again = run(x, put(grad_y), {.activation = Activation::relu}, DType::f32, Place::dense);
  CHECK(same_values(fused.grad_x, again.grad_x));
  CHECK(same_values(fused.running_var, again.running_var));
}

TEST_CASE("fused GELU and SiLU on the GPU give what these give behind, and the same bits twice", "[cuda][norm]") {
  if (!has_gpu()) return;
  const Shape shape{5, 12, 7, 7};
  const Tensor x = put(values_of(shape, DType::f32, false, 8)), grad_y = put(values_of(shape, DType::f32, false, 9));
  for (const bool gelu : {true, false}) {
    const BatchNormOptions options{.activation = gelu ? Activation::gelu : Activation::silu};
    const Step fused = run(x, grad_y, options, DType::f32, Place::dense),
               plain = run(x, grad_y, {}, DType::f32, Place::dense);
    const Tensor y = empty_like(x), gradient = empty_like(x);
    (gelu ? kernels::gelu_forward : kernels::silu_forward)(plain.y, Out(y));
    (gelu ? kernels::gelu_backward : kernels::silu_backward)(plain.y, grad_y, Out(gradient));
    const Step behind = run(x, gradient, {}, DType::f32, Place::dense);
    CHECK(same_values(fused.y, y));
    // A few roundings of each gradient, of up to 6 * 1.13; there are 245 in a sum, of |x - mean| / std below 6.
    const double rounding = 6.0 * 1.13 * 4 * kU;
    CHECK(outside(fused.grad_bias, behind.grad_bias, 245 * rounding) == "");
    CHECK(outside(fused.grad_weight, behind.grad_weight, 6.0 * 245 * rounding) == "");
    CHECK(outside(fused.grad_x, behind.grad_x, 1.5 * 1.5 * 2.0 * (1.0 + 1.0 + 36.0) * rounding) == "");
    const Step again = run(x, grad_y, options, DType::f32, Place::dense);
    CHECK(same_values(fused.grad_x, again.grad_x));
  }
}

TEST_CASE("batch norm on the GPU refuses f64 and mixed devices", "[cuda][norm]") {
  if (!has_gpu()) return;
  const Tensor x = Tensor::zeros({4, 3}, {.dtype = DType::f64, .device = kGpu});
  for (const bool training : {true, false}) {
    CHECK_THAT(error_of([&] { run(x, x, {.training = training}, DType::f64, Place::dense); }),
               ContainsText("CUDA kernels take f32, f16 and bf16, got f64"));
  }
  const Tensor here = Tensor::zeros({4, 3}), there = put(here), c_here = Tensor::zeros({3}), c_there = put(c_here),
               none;
  CHECK_THAT(error_of([&] {
               kernels::batch_norm_backward(x, none, none, Tensor::zeros({3}, x.options()),
                                            Tensor::zeros({3}, x.options()), {}, x, Out(x), {}, {});
             }),
             ContainsText("got f64"));
  CHECK_THAT(error_of([&] {
               kernels::batch_norm_forward_train(there, c_here, none, {}, {}, {}, Out(there), Out(c_there),
                                                 Out(c_there));
             }),
             ContainsText("move one of them"));
  CHECK_THAT(error_of([&] {
               kernels::batch_norm_forward_eval(here, none, none, c_here, c_there, {}, Out(here), Out(c_here),
                                                Out(c_here));
             }),
             ContainsText("move one of them"));
  CHECK_THAT(error_of([&] {
               kernels::batch_norm_backward(there, none, none, c_there, c_there, {}, here, Out(there), {}, {});
             }),
             ContainsText("move one of them"));
}

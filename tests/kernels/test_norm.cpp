// Batch normalisation beyond the op table: accuracy far from zero, running statistics, fused activations, threads.
#include "tandem/kernels/activation/gelu.h"
#include "tandem/kernels/activation/silu.h"
#include "tandem/kernels/norm/batch_norm.h"
#include "tandem/kernels/norm/batch_norm_implementations.h"
#include "tests/kernels/image_support.h"
#include "tests/support/catch.h"

#include <array>

using namespace tandem;
using namespace tandem::test;
using kernels::Activation;
using kernels::BatchNormOptions;

namespace {

/// All tensors of one training step, forward and backward.
struct Step {
  Tensor weight, bias, running_mean, running_var, y, mean, inverse_std, grad_x, grad_weight, grad_bias;
};

Step run(const Tensor& x, const Tensor& grad_y, const BatchNormOptions& options, bool reference = false) {
  const Shape channels{x.size(1)};
  const TensorOptions kind{.dtype = kernels::batch_norm_statistics_dtype(x.dtype())};
  Step s{.weight = Tensor::full(channels, 1.5, kind),
         .bias = Tensor::full(channels, -0.25, kind),
         .running_mean = Tensor::full(channels, 2.0, kind),
         .running_var = Tensor::full(channels, 3.0, kind),
         .y = poisoned_like(x),
         .mean = Tensor::full(channels, std::nan(""), kind),
         .inverse_std = Tensor::full(channels, std::nan(""), kind),
         .grad_x = poisoned_like(x),
         .grad_weight = Tensor::full(channels, std::nan(""), kind),
         .grad_bias = Tensor::full(channels, std::nan(""), kind)};
  const auto forward = reference ? kernels::reference::batch_norm_forward_train : kernels::batch_norm_forward_train;
  forward(x, s.weight, s.bias, Out(s.running_mean), Out(s.running_var), options, Out(s.y), Out(s.mean),
          Out(s.inverse_std));
  const auto backward = reference ? kernels::reference::batch_norm_backward : kernels::batch_norm_backward;
  backward(x, s.weight, s.bias, s.mean, s.inverse_std, options, grad_y, Out(s.grad_x), Out(s.grad_weight),
           Out(s.grad_bias));
  return s;
}

double largest_difference(const Tensor& a, const Tensor& b) {
  const auto x = a.to_vector<double>(), y = b.to_vector<double>();
  double largest = 0.0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (!(std::abs(x[i] - y[i]) <= largest)) largest = std::abs(x[i] - y[i]);
  }
  return largest;
}

constexpr double kU = 0x1p-24;
constexpr std::array kActivations{Activation::none, Activation::relu, Activation::gelu, Activation::silu};

}  // namespace

// Sizes with one chunk, with many, and with several chunks per block; channel counts below, at and above the vector
// width.
TEST_CASE("a training step agrees with the reference in f64, near zero and far from it") {
  const Shape shape =
      GENERATE(Shape{4, 3, 5, 7}, Shape{16, 33, 9, 11}, Shape{64, 8, 32, 32}, Shape{40, 130, 3, 3}, Shape{200, 64});
  const float shift = GENERATE(0.0f, 1000.0f);
  const Activation activation = GENERATE(from_range(kActivations));
  const bool relu = activation == Activation::relu;
  const bool smooth = activation == Activation::gelu || activation == Activation::silu;
  INFO("x " << to_string(shape) << " around " << shift << ", activation " << static_cast<int>(activation));
  const Tensor x = random_images(shape, 1, 1.0f, shift), grad_y = random_images(shape, 2);
  const BatchNormOptions options{.activation = activation};
  const Step fast = run(x, grad_y, options), exact = run(to_f64(x), to_f64(grad_y), options, true);
  const double size = std::abs(static_cast<double>(shift)) + 6.0;  // |x|
  // The mean is rounded once, after sums of 64 deviations of up to 2 * 6 in f32.
  const double mean_error = kU * size + 64 * kU;
  CHECK(largest_difference(fast.mean, exact.mean) <= mean_error);
  // d(1/std) = -d(var) / 2 std^3; squares of up to 36, means 1 around: 64 roundings of a mean square of about 1, twice.
  CHECK(largest_difference(fast.inverse_std, exact.inverse_std) <= 128 * kU);
  // y = (x - mean) * 1.5 / std + bias with |x - mean| <= 6.
  const double y_error = 1.5 * 1.5 * (mean_error + 6.0 * 130 * kU);
  // GELU and SiLU: slopes of at most 1.13, and 8 roundings of a number of up to 1.5 * 6 + 0.25.
  CHECK(largest_difference(fast.y, exact.y) <= (smooth ? 1.13 * y_error + 8 * 9.25 * kU : y_error));
  CHECK(largest_difference(fast.running_mean, exact.running_mean) <= 0.1 * mean_error + 2 * kU * size);
  CHECK(largest_difference(fast.running_var, exact.running_var) <= 0.1 * 256 * kU + 8 * kU);
  // Sums over all rows: 64 roundings of each chunk's sum, |gradient| <= 6, |xhat| <= 6 and known to y_error; ReLU may
  // let pass or hold back the few gradients whose y is 0 to within y_error, of a density below 0.5.
  const double rows = static_cast<double>(x.numel() / x.size(1));
  const double flipped = relu ? 6.0 * (2.0 + rows * y_error) : 0.0;
  // Of GELU and SiLU, slopes of at most 1.13 change by at most 0.8 for each unit, and are known to 16 roundings.
  const double slope_error = smooth ? 6.0 * (0.8 * y_error + 16 * kU) : 0.0;
  const double sum_error = rows * (64 * 1.13 * kU + slope_error) + flipped;
  CHECK(largest_difference(fast.grad_bias, exact.grad_bias) <= sum_error);
  CHECK(largest_difference(fast.grad_weight, exact.grad_weight) <= 6.0 * sum_error + rows * y_error);
  if (!relu) {
    CHECK(largest_difference(fast.grad_x, exact.grad_x) <=
          1.5 * 1.5 * (14.0 * sum_error / rows + 8.0 * 1.13 * y_error + 64 * kU + slope_error));
  }
}

TEST_CASE("a training step in half is the one in f32, rounded once") {
  const DType dtype = GENERATE(DType::f16, DType::bf16);
  const Shape shape = GENERATE(Shape{4, 3, 5, 7}, Shape{64, 8, 32, 32}, Shape{40, 130, 3, 3}, Shape{200, 64});
  const BatchNormOptions options{.activation = GENERATE(from_range(kActivations))};
  INFO("x " << to_string(shape) << " " << name_of(dtype) << ", activation " << static_cast<int>(options.activation));
  const Tensor x = in_dtype(random_images(shape, 1, 1.0f, 3.0f), dtype),
               grad_y = in_dtype(random_images(shape, 2), dtype);
  const Step half = run(x, grad_y, options), wide = run(in_dtype(x, DType::f32), in_dtype(grad_y, DType::f32), options);
  CHECK(half.y.to_vector<double>() == in_dtype(wide.y, dtype).to_vector<double>());
  CHECK(half.grad_x.to_vector<double>() == in_dtype(wide.grad_x, dtype).to_vector<double>());
  for (const auto member : {&Step::mean, &Step::inverse_std, &Step::running_mean, &Step::running_var,
                            &Step::grad_weight, &Step::grad_bias}) {
    CHECK((half.*member).to_vector<double>() == (wide.*member).to_vector<double>());
  }
}

TEST_CASE("running statistics move by momentum, the variance unbiased") {
  const Tensor x = Tensor::from(std::vector<float>{1, 2, 3, 6}, {4, 1}), y = empty_like(x);
  const Tensor mean = Tensor::full({1}, 10.0), var = Tensor::full({1}, 20.0), saved = empty_like(mean),
               inverse = empty_like(mean);
  kernels::batch_norm_forward_train(x, Tensor(), Tensor(), Out(mean), Out(var), {.momentum = 0.25}, Out(y), Out(saved),
                                    Out(inverse));
  CHECK(saved.item() == 3.0);
  CHECK(mean.item() == 0.75 * 10.0 + 0.25 * 3.0);
  // Deviations -2, -1, 0, 3: biased 14 / 4, unbiased 14 / 3.
  CHECK(std::abs(var.item() - (0.75 * 20.0 + 0.25 * 14.0 / 3.0)) <= 2 * kU * 20.0);
  CHECK(std::abs(inverse.item() - 1.0 / std::sqrt(3.5 + 1e-5)) <= kU);
}

TEST_CASE("an empty batch changes nothing; a single value has no variance") {
  const Tensor mean = Tensor::full({3}, 10.0), var = Tensor::full({3}, 20.0), saved = empty_like(mean),
               inverse = empty_like(mean);
  const auto train = [&](const Tensor& x) {
    kernels::batch_norm_forward_train(x, Tensor(), Tensor(), Out(mean), Out(var), {}, Out(empty_like(x)), Out(saved),
                                      Out(inverse));
  };
  train(Tensor::empty({0, 3, 4, 4}));
  CHECK(mean.to_vector<double>() == std::vector<double>(3, 10.0));
  const Tensor grad = Tensor::full({3}, 7.0), none = Tensor::empty({0, 3, 4, 4});
  kernels::batch_norm_backward(none, Tensor(), Tensor(), saved, inverse, {}, none, Out(none), Out(grad), {});
  CHECK(grad.to_vector<double>() == std::vector<double>(3, 0.0));
  CHECK_THAT(error_of([&] { train(Tensor::zeros({1, 3, 1, 1})); }), ContainsText("more than one value per channel"));
}

TEST_CASE("a constant channel is normalised to the bias") {
  const Tensor x = Tensor::full({8, 5, 9, 9}, 1234.5, {.layout = Layout::channels_last});
  const Step step = run(x, random_images(x.shape(), 3), {});
  CHECK(step.y.to_vector<double>() == std::vector<double>(static_cast<std::size_t>(x.numel()), -0.25));
}

TEST_CASE("fused ReLU gives what ReLU behind gives, to the last bit") {
  const Tensor x = random_images({8, 20, 9, 9}, 4), grad_y = random_images({8, 20, 9, 9}, 5);
  const Step fused = run(x, grad_y, {.activation = Activation::relu});
  const Step plain = run(x, grad_y, {});
  const Tensor masked = empty_like(x);
  for (std::int64_t i = 0; i < x.numel(); ++i) {
    const float y = plain.y.data<float>()[i];
    REQUIRE(fused.y.data<float>()[i] == (y > 0.0f ? y : 0.0f));
    Out(masked).data<float>()[i] = y > 0.0f ? grad_y.data<float>()[i] : 0.0f;
  }
  const Step behind = run(x, masked, {});
  CHECK(same_bits(fused.grad_x, behind.grad_x));
  CHECK(same_bits(fused.grad_weight, behind.grad_weight));
  CHECK(same_bits(fused.grad_bias, behind.grad_bias));
}

// The same functions of the same numbers. grad_x alone may differ: the compiler may round the gradient's product with
// the slope together with the difference behind it.
TEST_CASE("fused GELU and SiLU give what these give behind: y and sums to the last bit, grad_x but for a rounding") {
  const bool gelu = GENERATE(true, false);
  const Tensor x = random_images({8, 20, 9, 9}, 4, 3.0f), grad_y = random_images({8, 20, 9, 9}, 5);
  const Step fused = run(x, grad_y, {.activation = gelu ? Activation::gelu : Activation::silu}),
             plain = run(x, grad_y, {});
  const Tensor y = empty_like(x), gradient = empty_like(x);
  (gelu ? kernels::gelu_forward : kernels::silu_forward)(plain.y, Out(y));
  (gelu ? kernels::gelu_backward : kernels::silu_backward)(plain.y, grad_y, Out(gradient));
  const Step behind = run(x, gradient, {});
  CHECK(same_bits(fused.y, y));
  CHECK(same_bits(fused.grad_weight, behind.grad_weight));
  CHECK(same_bits(fused.grad_bias, behind.grad_bias));
  // One rounding of a gradient of up to 6 * 1.13, times weight / std, which is below 1.5.
  CHECK(largest_difference(fused.grad_x, behind.grad_x) <= 1.5 * 6.0 * 1.13 * 2 * kU);
}

TEST_CASE("batch norm with GELU or SiLU has the slopes of its definition in f64") {
  for (const Activation activation : {Activation::gelu, Activation::silu}) {
    const Tensor x = to_f64(random_images({3, 2, 3, 3}, 8)), grad_y = to_f64(random_images({3, 2, 3, 3}, 9));
    const Step step = run(x, grad_y, {.activation = activation});
    const auto loss = [&](const Tensor& input) {
      const std::vector<double> values = run(input, grad_y, {}).y.to_vector<double>(),
                                weights = grad_y.to_vector<double>();
      double sum = 0.0;
      for (std::size_t i = 0; i < values.size(); ++i) {
        const double z = values[i];
        const double share =
            activation == Activation::gelu ? (1.0 + std::erf(z / std::sqrt(2.0))) / 2.0 : 1.0 / (1.0 + std::exp(-z));
        sum += z * share * weights[i];
      }
      return sum;
    };
    constexpr double kStep = 1e-5;
    for (std::int64_t i = 0; i < x.numel(); ++i) {
      const Tensor more = x.clone(), less = x.clone();
      Out(more).data<double>()[i] += kStep;
      Out(less).data<double>()[i] -= kStep;
      // Third derivatives of the size of 100, and roundings of a sum of some 10.
      CHECK(std::abs((loss(more) - loss(less)) / (2.0 * kStep) - step.grad_x.data<double>()[i]) <= 1e-7);
    }
  }
}

TEST_CASE("batch norm does not depend on the number of threads") {
  const Tensor x = random_images({32, 24, 16, 16}, 6), grad_y = random_images({32, 24, 16, 16}, 7);
  const auto with = [&](int threads) {
    const ThreadScope scope(threads);
    return run(x, grad_y, {.activation = Activation::relu});
  };
  const Step one = with(1), three = with(3);
  CHECK(same_bits(one.y, three.y));
  CHECK(same_bits(one.running_var, three.running_var));
  CHECK(same_bits(one.grad_x, three.grad_x));
  CHECK(same_bits(one.grad_weight, three.grad_weight));
}

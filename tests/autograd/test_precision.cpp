// Which op computes in which dtype in half precision, and gradients on their way between them.
#include "tandem/autograd/functions.h"
#include "tandem/autograd/precision.h"
#include "tandem/autograd/variable.h"
#include "tandem/kernels/float32_products.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"

#include <cmath>

using namespace tandem;
using namespace tandem::autograd;
using namespace tandem::test;

namespace {

Tensor leaf(const Shape& shape, double value, DType dtype) {
  return set_requires_grad(Tensor::full(shape, value, {.dtype = dtype, .layout = Layout::channels_last}));
}

}  // namespace

TEST_CASE("precisions have names, and unknown ones are told what there is") {
  for (const Precision precision : kPrecisions) CHECK(parse_precision(name_of(precision)) == precision);
  CHECK_THAT(error_of([] { parse_precision("half"); }), ContainsText("unknown precision 'half' (choices: fp32"));
  for (const auto& [dtype, precision] :
       {std::pair{"f32", "mean fp32?"}, std::pair{"f16", "mean fp16?"}, std::pair{"BF16", "mean bf16?"}})
    CHECK_THAT(error_of([&, name = dtype] { parse_precision(name); }), ContainsText(precision));
}

TEST_CASE("TF32 is a way to multiply f32, and of GPUs alone") {
  using kernels::Float32Products;
  const kernels::Float32ProductsScope restore(kernels::float32_products());
  const Device gpu{DeviceType::cuda, 0};
  for (const auto& [precision, products] :
       {std::pair{Precision::tf32, Float32Products::tf32}, std::pair{Precision::tf32x3, Float32Products::tf32x3},
        std::pair{Precision::fp16, Float32Products::full}, std::pair{Precision::fp32, Float32Products::full}}) {
    use_products_of(precision, gpu);
    CHECK(kernels::float32_products() == products);
  }
  CHECK(storage_dtype(Precision::tf32) == DType::f32);
  CHECK_THAT(error_of([] { use_products_of(Precision::tf32, {}); }),
             ContainsText("option precision tf32 is for a GPU's tensor cores, not for cpu: use fp32 here"));
  CHECK_NOTHROW(use_products_of(Precision::bf16, {}));
}

TEST_CASE("rules: products in half, statistics and parameters of batch norm in f32, loss and sums to f32") {
  for (const OpKind kind : {OpKind::convolution, OpKind::linear}) {
    CHECK(parameter_dtype(kind, Precision::fp16) == DType::f16);
    CHECK(parameter_dtype(kind, Precision::bf16) == DType::bf16);
    CHECK(parameter_dtype(kind, Precision::fp32) == DType::f32);
    CHECK(result_dtype(kind, DType::f16) == DType::f16);
  }
  CHECK(parameter_dtype(OpKind::normalization, Precision::fp16) == DType::f32);
  CHECK(result_dtype(OpKind::normalization, DType::bf16) == DType::bf16);
  for (const OpKind kind : {OpKind::loss, OpKind::reduction, OpKind::exponential}) {
    CHECK(result_dtype(kind, DType::f16) == DType::f32);
    CHECK(result_dtype(kind, DType::bf16) == DType::f32);
    CHECK(result_dtype(kind, DType::f64) == DType::f64);
  }
}

TEST_CASE("ops follow the rules, and gradients come in the dtype of what they belong to") {
  const DType half = GENERATE(DType::f16, DType::bf16);
  const Tensor images = leaf({2, 3, 4, 4}, 0.5, DType::f32);
  const Tensor weight = leaf({4, 3, 1, 1}, 0.25, half), bias = leaf({4}, 1.0, half);
  const Tensor scale = leaf({4}, 1.0, DType::f32), shift = leaf({4}, 0.5, DType::f32);
  const Tensor mean = Tensor::zeros({4}), variance = Tensor::full({4}, 1.0);
  const Tensor matrix = leaf({5, 4}, 0.125, half), offset = leaf({5}, 0.0, half);

  const Tensor convolved = GENERATE(true, false) ? conv2d(images, weight, bias) : conv_bias_relu(images, weight, bias);
  CHECK(convolved.dtype() == half);
  const Tensor normalised = batch_norm(convolved, scale, shift, mean, variance, {});
  CHECK(normalised.dtype() == half);
  CHECK(mean.to_vector<float>()[0] == 0.1f * 1.375f);
  const Tensor logits = linear(flatten(global_avg_pool2d(normalised)), matrix, offset);
  CHECK(logits.dtype() == half);
  const Tensor loss = softmax_cross_entropy(logits, Tensor::zeros({2}, {.dtype = DType::i64}));
  CHECK(loss.dtype() == DType::f32);
  backward(loss);
  for (const Tensor& each : {images, weight, bias, scale, shift, matrix, offset}) {
    REQUIRE(grad(each).defined());
    CHECK(grad(each).dtype() == each.dtype());
  }
  // The gradient of logit c is (p - [c is the label]) / N, rounded to half.
  CHECK(std::abs(grad(offset).to_vector<float>()[0] + 0.8f) <= 0.8f * 0x1p-8f);
}

TEST_CASE("half inputs of an f32 layer are widened; what is not half and f32 is not brought together") {
  const Tensor rows = leaf({2, 3}, 0.5, DType::bf16), matrix = leaf({4, 3}, 0.25, DType::f32);
  const Tensor y = linear(rows, matrix, Tensor());
  CHECK(y.dtype() == DType::f32);
  backward(sum(y));
  CHECK(grad(rows).dtype() == DType::bf16);
  CHECK(grad(rows).to_vector<float>() == std::vector<float>(6, 1.0f));
  for (const DType other : {DType::f64, DType::f16})
    CHECK_THROWS_AS(linear(rows, leaf({4, 3}, 0.25, other), Tensor()), Error);
}

TEST_CASE("sums of half numbers go beyond the range of half") {
  const Tensor x = leaf({70, 1000}, 2.0, DType::f16);
  const Tensor total = sum(x);
  CHECK(total.dtype() == DType::f32);
  CHECK(total.item() == 140000.0);
  CHECK(mean(x).item() == 2.0);
  backward(total);
  CHECK(grad(x).dtype() == DType::f16);
  CHECK(grad(x).to_vector<float>() == std::vector<float>(70000, 1.0f));
}

TEST_CASE("gradients of several backward passes over a half leaf are added up in f32") {
  const Tensor x = leaf({3}, 1.0, DType::f16);
  const auto add_gradient = [&](double value) { backward(sum(x), Tensor::full({}, value)); };
  add_gradient(2048.0);
  CHECK(grad(x).dtype() == DType::f16);
  for (int i = 0; i < 8; ++i) add_gradient(0.5);  // f16 steps by 2 here
  CHECK(grad(x).dtype() == DType::f32);
  CHECK(grad(x).to_vector<float>() == std::vector<float>(3, 2052.0f));
  CHECK(grad(x).storage()->tag() == MemoryTag::gradients);
  CHECK_THROWS_AS(set_grad(x, Tensor::zeros({3}, {.dtype = DType::f64})), Error);
  CHECK_THROWS_AS(set_grad(x, Tensor::zeros({3}, {.dtype = DType::bf16})), Error);
  CHECK_THROWS_AS(set_grad(leaf({3}, 1.0, DType::f32), Tensor::zeros({3}, {.dtype = DType::f16})), Error);
}

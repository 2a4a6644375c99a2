// Optimizer kernels: many tensors in one pass, norms, and what they refuse. The formulas are tested in tests/optim.
#include "tandem/kernels/optimizer/adam.h"
#include "tandem/kernels/optimizer/norm.h"
#include "tandem/kernels/optimizer/rmsprop.h"
#include "tandem/kernels/optimizer/sgd.h"
#include "tests/kernels/image_support.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"

using namespace tandem;
using namespace tandem::test;

namespace {

/// From empty to larger than a thread's share, one of them of rank 0.
std::vector<Tensor> tensors(std::uint32_t seed) {
  std::vector<Tensor> result;
  for (const Shape& shape : {Shape{3}, Shape{0}, Shape{64, 32, 3, 3}, Shape{}, Shape{70001}, Shape{1, 1, 1, 1}}) {
    result.push_back(random_images(shape, seed++));
  }
  return result;
}

std::vector<kernels::AdamItem> adam_items(const std::vector<Tensor>& parameters, const std::vector<Tensor>& gradients) {
  std::vector<kernels::AdamItem> items;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    items.push_back({.parameter = Out(parameters[i]),
                     .gradient = gradients[i],
                     .exp_avg = Out(zeros_like(parameters[i])),
                     .exp_avg_sq = Out(zeros_like(parameters[i])),
                     .max_exp_avg_sq = {},
                     .step = 1});
  }
  return items;
}

}  // namespace

TEST_CASE("a step over many tensors gives what steps over each give, on any number of threads") {
  const std::vector<Tensor> together = tensors(1), alone = tensors(1), gradients = tensors(11);
  {
    const ThreadScope scope(3);
    kernels::adam_step(adam_items(together, gradients), {});
  }
  const ThreadScope scope(1);
  for (const kernels::AdamItem& item : adam_items(alone, gradients)) kernels::adam_step({&item, 1}, {});
  for (std::size_t i = 0; i < together.size(); ++i)
    CHECK(together[i].to_vector<float>() == alone[i].to_vector<float>());
  CHECK(together[2].to_vector<float>() != tensors(1)[2].to_vector<float>());
}

TEST_CASE("a step counts as an in-place change of the parameter") {
  const Tensor parameter = Tensor::zeros({4}), gradient = Tensor::zeros({4});
  const std::uint64_t before = parameter.storage()->version();
  const kernels::SgdItem item{Out(parameter), gradient, {}, true};
  kernels::sgd_step({&item, 1}, {});
  CHECK(parameter.storage()->version() > before);
}

TEST_CASE("squared_norm sums in double, in an order of its own") {
  const std::vector<Tensor> values = tensors(3);
  double expected = 0.0;
  std::int64_t count = 0;
  for (const Tensor& tensor : values) {
    for (const double value : tensor.to_vector<double>()) expected += value * value;
    count += tensor.numel();
  }
  const ThreadScope three(3);
  const double sum = kernels::squared_norm(values);
  CHECK(std::abs(sum - expected) <= static_cast<double>(count) * 0x1p-53 * expected);
  const ThreadScope one(1);
  CHECK(kernels::squared_norm(values) == sum);
  CHECK(kernels::squared_norm({}) == 0.0);
  const std::vector<Tensor> whole{Tensor::full({3}, 2.0), Tensor::full({5}, -3.0, {.dtype = DType::f16})};
  CHECK(kernels::squared_norm(whole) == 57.0);
  kernels::scale_all(outs_of(whole), 0.5);
  CHECK(kernels::squared_norm(whole) == 57.0 / 4.0);
}

TEST_CASE("tensors that do not go together are refused") {
  const Tensor parameter = Tensor::zeros({2, 3, 2, 2}, {.layout = Layout::channels_last}), fits = zeros_like(parameter);
  const auto sgd = [&](const Tensor& gradient, const Tensor& buffer, double momentum) {
    return error_of([&] {
      const kernels::SgdItem item{Out(parameter), gradient, Out(buffer), false};
      kernels::sgd_step({&item, 1}, {.momentum = momentum});
    });
  };
  CHECK_THAT(sgd(Tensor::zeros({2, 3}), {}, 0.0), ContainsText("sgd_step: the gradient of parameter f32[2, 3, 2, 2]"));
  CHECK_THAT(sgd(Tensor::zeros({2, 3, 2, 2}), {}, 0.0), ContainsText("strides [12, 1, 6, 3]"));
  CHECK_THAT(sgd(fits, {}, 0.9), ContainsText("the momentum buffer of parameter f32[2, 3, 2, 2] must be f32"));
  CHECK(sgd(fits, {}, 0.0) == "no error");
  CHECK_THAT(error_of([&] {
               const kernels::AdamItem item{Out(parameter), fits, Out(fits), Out(Tensor::zeros({1})), {}, 1};
               kernels::adam_step({&item, 1}, {});
             }),
             ContainsText("adam_step: exp_avg_sq of parameter"));
  CHECK_THAT(error_of([&] {
               const kernels::AdamItem item{Out(parameter), fits, Out(fits), Out(fits), {}, 0};
               kernels::adam_step({&item, 1}, {});
             }),
             ContainsText("steps count from 1, got 0"));
  CHECK_THAT(error_of([&] {
               const kernels::RmspropItem item{Out(parameter), fits, {}, {}, {}};
               kernels::rmsprop_step({&item, 1}, {});
             }),
             ContainsText("rmsprop_step: square_avg of parameter"));
  CHECK_THAT(error_of([&] { kernels::scale_all(std::array{Out(Tensor::zeros({4}).narrow(0, 0, 2, 2))}, 1.0); }),
             ContainsText("scale_all: needs dense floating tensors"));
}

TEST_CASE("the factor of gradients counts, and masters of the wrong kind are refused") {
  const Tensor parameter = Tensor::full({3}, 1.0), gradient = Tensor::full({3}, 8.0);
  const kernels::SgdItem item{Out(parameter), gradient, {}, true};
  kernels::sgd_step({&item, 1}, {.lr = 0.5, .gradient_factor = 0.125});
  CHECK(parameter.to_vector<double>() == std::vector<double>(3, 0.5));
  const Tensor half = Tensor::zeros({3}, {.dtype = DType::f16});
  const auto refused = [](const kernels::SgdItem& bad) { return error_of([&] { kernels::sgd_step({&bad, 1}, {}); }); };
  CHECK_THAT(refused({Out(parameter), gradient, {}, true, Out(Tensor::zeros({3}))}),
             ContainsText("only f16 and bf16 parameters have a master"));
  CHECK_THAT(refused({Out(half), half, {}, true, Out(half)}),
             ContainsText("the master of parameter f16[3] must be f32"));
  CHECK_THAT(refused({Out(half), Tensor::zeros({3}, {.dtype = DType::f64}), {}, true}),
             ContainsText("the gradient of parameter f16[3] must be f16"));
  CHECK_THAT(refused({Out(parameter), half, {}, true}), ContainsText("the gradient of parameter f32[3] must be f32"));
}

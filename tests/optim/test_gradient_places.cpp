// Places in which gradients stay from step to step.
#include "tandem/optim/gradient_places.h"

#include "tandem/autograd/functions/arithmetic.h"
#include "tandem/autograd/functions/cast.h"
#include "tandem/autograd/functions/reduce.h"
#include "tandem/autograd/variable.h"
#include "tests/optim/optimizer_support.h"
#include "tests/support/devices.h"
#include "tests/support/error_of.h"

using namespace tandem;
using namespace tandem::test;
using optim::GradientPlaces;
using optim::HalfGradients;

namespace {

std::vector<Tensor> leaves_on(Device device, DType dtype) {
  std::vector<Tensor> leaves;
  for (const Tensor& parameter : make_parameters(dtype))
    leaves.push_back(autograd::set_requires_grad(parameter.detach().to(device)));
  return leaves;
}

/// Gives each leaf the gradient factor * itself.
void run_backward(const std::vector<Tensor>& leaves, double factor) {
  for (const Tensor& leaf : leaves) {
    const Tensor wide = autograd::cast(leaf, DType::f32);
    autograd::backward(autograd::scale(autograd::sum(autograd::mul(wide, wide)), 0.5 * factor));
  }
}

}  // namespace

TEST_CASE("gradients stay in their places over steps: the first pass stores, later ones add", "[cuda][optimizer]") {
  const Device device = GENERATE(from_range(cpu_and_gpu()));
  for (const DType dtype : {DType::f32, DType::f16}) {
    for (const HalfGradients half : {HalfGradients::as_parameters, HalfGradients::in_f32}) {
      CAPTURE(name_of(device), name_of(dtype), static_cast<int>(half));
      const std::vector<Tensor> leaves = leaves_on(device, dtype), twins = leaves_on(device, dtype);
      const GradientPlaces places(leaves, half);
      const bool may_add = dtype == DType::f32 || half == HalfGradients::in_f32;
      for (int step = 0; step < 3; ++step) {
        for (int pass = 0; pass < (may_add ? 2 : 1); ++pass) {
          run_backward(leaves, 1.0 + step);
          run_backward(twins, 1.0 + step);
        }
        places.check();
        for (std::size_t i = 0; i < leaves.size(); ++i) {
          const Tensor gradient = autograd::grad(leaves[i]);
          CHECK(gradient.is_same(places.place(i)));
          CHECK(gradient.strides() == leaves[i].strides());
          CHECK(gradient.to_vector<float>() == autograd::grad(twins[i]).to_vector<float>());
          autograd::clear_grad(leaves[i]);
          autograd::clear_grad(twins[i]);
        }
      }
    }
  }
}

TEST_CASE("places of gradients are one block, begin at 0, and none reaches into the next") {
  const std::vector<Tensor> leaves = leaves_on({}, DType::bf16);
  const GradientPlaces places(leaves);
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    CHECK(places.place(i).storage() == places.place(0).storage());
    CHECK(places.place(i).to_vector<float>() == std::vector<float>(static_cast<std::size_t>(leaves[i].numel()), 0.0F));
  }
  for (std::size_t i = 0; i < leaves.size(); ++i) places.place(i).fill(static_cast<double>(i + 1));
  for (std::size_t i = 0; i < leaves.size(); ++i)
    CHECK(places.place(i).to_vector<float>() ==
          std::vector<float>(static_cast<std::size_t>(leaves[i].numel()), static_cast<float>(i + 1)));
}

TEST_CASE("places of gradients end with their owner, and gradients that are there stay") {
  const std::vector<Tensor> leaves = leaves_on({}, DType::f32);
  const void* before = nullptr;
  {
    const GradientPlaces places(leaves);
    run_backward(leaves, 1.0);
    before = autograd::grad(leaves[0]).raw_data();
  }
  CHECK_FALSE(autograd::gradient_place(leaves[0]).defined());
  CHECK(autograd::grad(leaves[0]).raw_data() == before);
  CHECK(autograd::grad(leaves[0]).to_vector<float>() == leaves[0].to_vector<float>());
}

TEST_CASE("places of gradients refuse what has none, and say whose gradient is elsewhere") {
  const std::vector<Tensor> leaves = leaves_on({}, DType::f16);
  CHECK_THAT(error_of([] { GradientPlaces({}); }), ContainsText("gradient places: there are no parameters"));
  CHECK_THAT(error_of([] { GradientPlaces({Tensor::zeros({2}, {.dtype = DType::i64})}); }),
             ContainsText("i64[2] is no floating leaf"));
  CHECK_THAT(error_of([&] { GradientPlaces({leaves[0], Tensor()}); }),
             ContainsText("gradient places: parameter 1 is undefined"));
  CHECK_THAT(error_of([&] { GradientPlaces({leaves[0], leaves[1], leaves[0]}); }),
             ContainsText("gradient places: parameters 0 and 2 are the same one, f16["));
  const GradientPlaces places(leaves);
  CHECK_THAT(error_of([&] { GradientPlaces(std::vector{leaves}); }), ContainsText("has a place already"));
  CHECK_THAT(error_of([&] { places.place(leaves.size()); }), ContainsText("there is no parameter"));
  run_backward(leaves, 1.0);
  places.check();
  run_backward({leaves[1]}, 1.0);
  CHECK_THAT(error_of([&] { places.check(); }), ContainsText("the gradient of parameter 1, f16["));
}

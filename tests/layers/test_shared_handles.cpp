// Handles of parameters: where a module changes its dtype or device, and where modules share one.
#include "tandem/autograd/functions/reduce.h"
#include "tandem/autograd/variable.h"
#include "tandem/layers/layers.h"
#include "tandem/optim/sgd.h"
#include "tests/support/catch.h"
#include "tests/support/cuda_device.h"
#include "tests/support/error_of.h"

using namespace tandem;
using namespace tandem::layers;
using namespace tandem::test;

namespace {

/// Two layers of one weight, as an autoencoder's may be.
struct Tied final : Module {
  Tensor first, second;

  Tied() : first(Initializer::constant({2, 2}, 1.0)), second(first) {
    register_parameter("first", first);
    register_parameter("second", second);
  }
  Tensor forward(const Tensor& x) override { return x; }
  std::string describe() const override { return "Tied"; }
};

/// The gradient of the weight is the sum of all inputs.
void backward_of(Linear& layer, double input) {
  const Tensor weight = layer.parameters()[0];
  autograd::backward(autograd::sum(layer(Tensor::full({1, 2}, input, weight.options()))));
}

}  // namespace

TEST_CASE("handles of parameters and buffers go along where a module changes its dtype") {
  BatchNorm2d norm({.channels = 3});
  const std::vector<Tensor> parameters = norm.parameters();
  const NamedTensors buffers = norm.named_buffers();
  autograd::set_grad(parameters[0], Tensor::full({3}, 1.0));
  norm.to(DType::f64);
  CHECK(parameters[0].dtype() == DType::f64);
  CHECK(parameters[0].is_same(norm.parameters()[0]));
  CHECK_FALSE(autograd::grad(parameters[0]).defined());
  CHECK(buffers[0].second.dtype() == DType::f64);
  CHECK(buffers[0].second.is_same(norm.named_buffers()[0].second));
}

TEST_CASE("parameters that are shared stay so where a module changes its dtype") {
  Tied tied;
  tied.to(DType::f64);
  CHECK(tied.first.dtype() == DType::f64);
  CHECK(tied.first.is_same(tied.second));
}

TEST_CASE("a shared parameter is one parameter, and has all its names in a state dict") {
  Tied tied;
  REQUIRE(tied.named_parameters().size() == 1);
  CHECK(tied.named_parameters()[0].first == "first");
  CHECK(tied.parameter_count() == 4);
  CHECK(tied.state_dict().size() == 2);
  const optim::SGD optimizer(tied.parameters(), {.lr = 0.1});  // which refuses a parameter given twice
  tied.requires_grad("second", false);
  CHECK_FALSE(autograd::requires_grad(tied.first));
}

TEST_CASE("an optimizer says that a parameter has another dtype than before") {
  Initializer initializer(1);
  Linear layer({.in = 2, .out = 1, .bias = false}, initializer);
  optim::SGD optimizer(layer.parameters(), {.lr = 0.5});
  layer.to(DType::f64);
  backward_of(layer, 1.0);
  const std::vector<double> before = layer.weight().to_vector<double>();
  CHECK(
      error_of([&] { optimizer.step(); }) ==
      "SGD: parameter 0 was f32 on cpu when the optimizer was made or made its last step, and is now f64 on cpu: make "
      "the optimizer after to() and set_precision()");
  CHECK(layer.weight().to_vector<double>() == before);
}

TEST_CASE("a module whose gradients have places refuses another dtype, and is left as it was") {
  Initializer initializer(1);
  Linear layer({.in = 2, .out = 2}, initializer);
  autograd::set_gradient_place(layer.bias(), Tensor::zeros({2}));
  CHECK_THAT(error_of([&] { layer.to(DType::f64); }),
             ContainsText("to: the gradient of parameter bias has a place, of a DistributedDataParallel"));
  CHECK(layer.weight().dtype() == DType::f32);
  layer.to(DType::f32);  // nothing to do
}

TEST_CASE("a leaf's data are replaced by others of its shape, and only a leaf's") {
  const Tensor leaf = autograd::set_requires_grad(Tensor::zeros({2})), copy = leaf;
  const Tensor made = autograd::sum(leaf);
  CHECK_THAT(error_of([&] { autograd::replace_data(leaf, Tensor::zeros({3})); }), ContainsText("cannot become f32[3]"));
  CHECK_THAT(error_of([&] { autograd::replace_data(leaf, leaf); }), ContainsText("requires a gradient itself"));
  CHECK_THAT(error_of([&] { autograd::replace_data(made, Tensor::zeros({})); }), ContainsText("recorded operation"));
  CHECK_THAT(error_of([&] { made.set_data(Tensor::zeros({})); }), ContainsText("recorded operation"));
  autograd::replace_data(leaf, Tensor::full({2}, 3.0));
  CHECK(copy.to_vector<float>() == std::vector<float>{3, 3});
  autograd::backward(autograd::sum(copy));
  CHECK(autograd::grad(leaf).to_vector<float>() == std::vector<float>{1, 1});
}

TEST_CASE("an optimizer made before a module moves trains it, and refuses a move once it has state", "[cuda]") {
  if (!has_gpu()) return;
  Initializer initializer(1);
  Linear layer({.in = 2, .out = 1, .bias = false}, initializer);
  const std::vector<float> before = layer.weight().to_vector<float>();
  optim::SGD optimizer(layer.parameters(), {.lr = 0.5, .momentum = 0.9});
  layer.to(kGpu);
  backward_of(layer, 2.0);
  optimizer.step();
  CHECK(layer.weight().to_vector<float>() == std::vector<float>{before[0] - 1, before[1] - 1});
  optimizer.zero_grad();
  layer.to(Device{});
  backward_of(layer, 2.0);
  CHECK_THAT(error_of([&] { optimizer.step(); }), ContainsText("and is now f32 on cpu"));
}

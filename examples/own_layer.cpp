// A layer of one's own, with parameters, in a loop of one's own: it learns to multiply two numbers.
#include <tandem/tandem.h>
using namespace tandem;

struct GatedLinear final : layers::Module {
  layers::Linear value, gate;
  Tensor& sharpness = add_parameter("sharpness", Tensor::full({}, 1.0));

  GatedLinear(std::int64_t in, std::int64_t out, layers::Initializer& random)
      : value({in, out}, random), gate({in, out}, random) {
    register_module("value", value);
    register_module("gate", gate);
  }
  Tensor forward(const Tensor& x) override { return value(x) * autograd::sigmoid(sharpness * gate(x)); }
};

int main() {
  layers::Initializer random(1);
  layers::Sequential model;
  model.add<GatedLinear>(2, 16, random);
  model.add<layers::Linear>({.in = 16, .out = 1}, random);
  for (const auto& [name, parameter] : model.named_parameters()) fmt::print("{:14} {}\n", name, describe(parameter));

  std::vector<float> pairs, products;
  for (int i = 0; i < 400; ++i) {
    const float a = i % 20 / 10.0f - 1, b = i / 20 / 10.0f - 1;
    pairs.insert(pairs.end(), {a, b});
    products.push_back(a * b);
  }
  const Tensor x = Tensor::from(pairs, {400, 2}), target = Tensor::from(products, {400, 1});
  optim::Adam adam(model.parameters(), {.lr = 0.02});
  for (int step = 0; step <= 300; ++step) {
    adam.zero_grad();
    const Tensor loss = autograd::mse_loss(model(x), target);
    autograd::backward(loss);
    adam.step();
    if (step % 100 == 0) fmt::print("step {:3}: mean squared error {:.6f}\n", step, loss.item());
  }
  const Tensor question = Tensor::from<float>({0.5f, -0.6f}, {1, 2});
  fmt::print("0.5 times -0.6 is about {:.2f}\n", model(question).item());
}

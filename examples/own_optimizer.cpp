// An optimizer of one's own: Adagrad, whose steps are long where gradients have been small. Beside SGD.
#include <tandem/tandem.h>
using namespace tandem;

class Adagrad final : public optim::Optimizer {
 public:
  Adagrad(std::vector<Tensor> parameters, double lr)
      : Optimizer("Adagrad", std::move(parameters), lr, false, {"sum"}) {}

 protected:
  void update(std::span<const Update> updates) override {
    const autograd::NoGrad no_grad;
    for (const Update& due : updates) {
      const Tensor gradient = gradient_factor() * due.gradient, sum = due.state[0];
      sum.copy_from(sum + gradient * gradient);
      due.parameter.copy_from(due.parameter - lr() * gradient / (autograd::sqrt(sum) + 1e-10));
    }
  }
};

/// The mean squared error after 200 steps on y = x0 + 10 x1, where x1 is ten times smaller than x0.
double trained_loss(layers::Module& model, optim::Optimizer& optimizer) {
  const Tensor x = Tensor::from<float>({-1, -0.1f, -1, 0.1f, 1, -0.1f, 1, 0.1f}, {4, 2});
  const Tensor y = Tensor::from<float>({-2, 0, 0, 2}, {4, 1});
  Tensor loss;
  for (int step = 0; step < 200; ++step) {
    optimizer.zero_grad();
    loss = autograd::mse_loss(model(x), y);
    autograd::backward(loss);
    optimizer.step();
  }
  return loss.item();
}

int main() {
  layers::Initializer random(1);
  layers::Linear first({.in = 2, .out = 1}, random), second({.in = 2, .out = 1}, random);
  optim::SGD sgd(first.parameters(), {.lr = 0.3});
  Adagrad adagrad(second.parameters(), 1.0);
  fmt::print("SGD {:.4f}, Adagrad {:.4f}\n", trained_loss(first, sgd), trained_loss(second, adagrad));
}

// The tape: slopes of a formula, a line fitted to points by gradient descent, and a check against differences.
#include <tandem/tandem.h>
using namespace tandem;

int main() {
  const Tensor x = autograd::set_requires_grad(Tensor::full({}, 3.0));
  const Tensor y = x * x - 2 * x;
  autograd::backward(y);
  fmt::print("y is {}, and dy/dx is {}\n", y.item(), autograd::grad(x).item());

  const Tensor points = Tensor::from<float>({-2, -1, 0, 1, 2}, {5});
  const Tensor targets = Tensor::from<float>({-3.1f, -0.9f, 1.2f, 2.9f, 4.9f}, {5});
  const Tensor slope = autograd::set_requires_grad(Tensor::full({}, 0.0));
  const Tensor offset = autograd::set_requires_grad(Tensor::full({}, 0.0));
  for (int step = 0; step <= 20; ++step) {
    const Tensor loss = autograd::mse_loss(points * slope + offset, targets);
    autograd::clear_grad(slope);
    autograd::clear_grad(offset);
    autograd::backward(loss);
    if (step % 5 == 0)
      fmt::print("{:2}: {:.2f} x + {:.2f}, loss {:.4f}\n", step, slope.item(), offset.item(), loss.item());
    const autograd::NoGrad no_grad;
    slope.copy_from(slope - 0.05 * autograd::grad(slope));
    offset.copy_from(offset - 0.05 * autograd::grad(offset));
  }

  const auto formula = [](const std::vector<Tensor>& in) { return autograd::tanh(in[0] * in[0]); };
  const Tensor at = autograd::set_requires_grad(Tensor::from<double>({-0.5, 0.1, 1.5}, {3}));
  fmt::print("gradients agree with differences: {}\n", autograd::gradcheck(formula, {at}).passed);
}

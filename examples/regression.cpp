// Fits a curve to noisy points: mean squared error, and a metric of one's own.
#include <tandem/tandem.h>
using namespace tandem;

/// x in [-3, 3) and sin(2 x) + noise, each [count, 1].
data::TensorDataset noisy_sine(std::int64_t count, std::uint64_t seed, float noise) {
  const RandomKey random{seed};
  std::vector<float> xs, ys;
  for (std::int64_t i = 0; i < count; ++i) {
    xs.push_back(6 * random.uniform(2 * i) - 3);
    ys.push_back(std::sin(2 * xs.back()) + noise * random.normal(2 * i + 1));
  }
  return data::TensorDataset({Tensor::from(xs, {count, 1}), Tensor::from(ys, {count, 1})});
}

int main() {
  return comm::run_program([](comm::MpiEnvironment&) {
    layers::Initializer random(1);
    layers::Sequential model;
    model.add<layers::Linear>({.in = 1, .out = 64}, random);
    model.add([](const Tensor& x) { return autograd::tanh(x); });
    model.add<layers::Linear>({.in = 64, .out = 64}, random);
    model.add([](const Tensor& x) { return autograd::tanh(x); });
    model.add<layers::Linear>({.in = 64, .out = 1}, random);
    optim::Adam adam(model.parameters(), {.lr = 1e-2});
    data::Loader training(noisy_sine(2000, 1, 0.1f), {.global_batch_size = 100, .seed = 1, .shuffle = true});
    data::Loader testing(noisy_sine(500, 2, 0.0f), {.global_batch_size = 500});
    const auto absolute = [](const Tensor& y, const Tensor& target) {
      return autograd::l1_loss(y, target, autograd::Reduction::sum).item();
    };
    const optim::CosineSchedule schedule(30 * training.batches());
    train::Trainer trainer(model, adam, training,
                           {.test = &testing,
                            .schedule = &schedule,
                            .loss = autograd::mse_loss,
                            .metrics = {{"absolute error", absolute}}});
    const train::EpochRecord last = trainer.fit(30);
    fmt::print("mean squared error {:.4f}, mean absolute error {:.4f}\n", last.test_loss,
               last.test_metrics.front().second);
    return 0;
  });
}

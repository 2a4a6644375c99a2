// Tells three spirals apart, with a layer, a function and a data set of one's own: mpirun -np 2 spirals
#include <tandem/tandem.h>
using namespace tandem;

Tensor sine(const Tensor& x) {
  const auto slope = [](auto v, auto grad) { return grad * std::cos(v); };
  return autograd::elementwise("sine", x, [](auto v) { return std::sin(v); }, slope);
}

struct SineLayer final : layers::Module {
  layers::Linear linear;
  SineLayer(int in, int out, layers::Initializer& init) : linear({in, out}, init) { register_module("linear", linear); }
  Tensor forward(const Tensor& x) override { return sine(linear(x)); }
};

data::Example spiral(std::int64_t i) {
  const float t = RandomKey{1}.uniform(2 * i), phi = 5 * t + 2.1f * (i % 3) + 0.15f * RandomKey{1}.normal(2 * i + 1);
  return {Tensor::from<float>({t * std::cos(phi), t * std::sin(phi)}, {2}), Tensor::from<std::int64_t>({i % 3}, {})};
}

int main() {
  return comm::run_program([](comm::ProcessGroup& group) {
    layers::Initializer init(1);
    layers::Sequential model;
    model.add<SineLayer>(2, 64, init);
    model.add<SineLayer>(64, 64, init);
    model.add<layers::Linear>({.in = 64, .out = 3}, init);
    optim::Adam adam(model.parameters(), {.lr = 1e-2});
    data::Loader points(data::dataset_of(3000, spiral),
                        {.seed = 1, .shuffle = true, .share = {group.size(), group.rank()}, .threads = 0});
    const train::EpochRecord last = train::Trainer(model, adam, points, {.group = &group}).fit(20);
    if (group.rank() == 0) fmt::print("{:.1f} % of the points are on the right spiral\n", last.train_accuracy);
  });
}

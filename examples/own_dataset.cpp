// A data set of one's own, trained on and tested, on one rank or several; the weights go to a file: own_dataset [FILE]
#include <tandem/tandem.h>
using namespace tandem;

/// Points in the plane; the class is 1 within a ring around the origin, else 0.
class Rings final : public data::Dataset {
 public:
  Rings(std::int64_t size, std::uint64_t seed) : size_(size), random_{seed} {}
  std::int64_t size() const override { return size_; }
  data::Example get(std::int64_t i) const override {
    const float x = 4 * random_.uniform(2 * i) - 2, y = 4 * random_.uniform(2 * i + 1) - 2;
    const float radius = std::sqrt(x * x + y * y);
    const std::int64_t label = radius > 0.8f && radius < 1.6f ? 1 : 0;
    return {Tensor::from<float>({x, y}, {2}), Tensor::from<std::int64_t>({label}, {})};
  }

 private:
  std::int64_t size_;
  RandomKey random_;
};

int main(int argc, char** argv) {
  return comm::run_program([&](comm::ProcessGroup& group) {
    const data::RankShare share{group.size(), group.rank()};
    data::Loader training(Rings(2000, 1), {.global_batch_size = 50, .seed = 1, .shuffle = true, .share = share});
    data::Loader testing(Rings(1000, 2), {.global_batch_size = 500, .share = share});
    layers::Initializer random(1);
    layers::Sequential model;
    model.add<layers::Linear>({.in = 2, .out = 32, .relu = true}, random);
    model.add<layers::Linear>({.in = 32, .out = 32, .relu = true}, random);
    model.add<layers::Linear>({.in = 32, .out = 2}, random);
    optim::Adam adam(model.parameters(), {.lr = 1e-2});
    const optim::CosineSchedule schedule(20 * training.batches());
    const auto print = [&](const train::EpochRecord& done) {
      if (group.rank() != 0 || done.epoch % 5 != 0) return;
      fmt::print("epoch {:2}: loss {:.2f}, {:.0f} % of the test points are right\n", done.epoch, done.train_loss,
                 done.test_accuracy);
    };
    train::Trainer(model, adam, training, {.test = &testing, .schedule = &schedule, .group = &group})
        .fit(20, {.epoch = print});
    if (argc > 1 && group.rank() == 0) layers::write_safetensors(argv[1], model.state_dict());
  });
}

// Trains a small network on images, on one process or on several: mpirun -np 2 train
#include <tandem/tandem.h>
using namespace tandem;

int main() {
  return comm::run_program([](comm::ProcessGroup& group) {
    const data::ImageDataset images = data::make_synthetic({.count = 1000});
    const data::RankShare share{group.size(), group.rank()};
    data::Loader training(images, {.global_batch_size = 50, .seed = 1, .shuffle = true, .share = share});
    data::Loader testing(images, {.global_batch_size = 200, .share = share});
    layers::Initializer initializer(1);
    layers::Sequential model;
    model.add<layers::Conv2d>({.in = 3, .out = 8, .kernel = 3, .stride = 2, .relu = true}, initializer);
    model.add<layers::Flatten>();
    model.add<layers::Linear>({.in = 8 * 15 * 15, .out = images.classes()}, initializer);
    optim::Adam adam(model.parameters(), {.lr = 1e-3});
    const auto print = [&](const train::EpochRecord& done) {
      const double accuracy = done.test_accuracy;
      if (group.rank() == 0) fmt::print("epoch {}: {:.1f} % of the images are right\n", done.epoch, accuracy);
    };
    train::Trainer(model, adam, training, {.test = &testing, .group = &group}).fit(3, {.epoch = print});
  });
}

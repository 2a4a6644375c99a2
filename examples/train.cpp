// Trains a small network on images, on one process or on several: mpirun -np 2 train
#include <tandem/tandem.h>
using namespace tandem;

int main() {
  return comm::run_program([](comm::MpiEnvironment& environment) {
    const auto group = comm::make_process_group("auto", environment);
    const data::ImageDataset images = data::make_synthetic({.count = 1000});
    const data::RankShare share{group->size(), group->rank()};
    data::Loader loader(images, {.global_batch_size = 50, .seed = 1, .shuffle = true, .share = share});
    layers::Initializer initializer(1);
    layers::Sequential model;
    model.add<layers::Conv2d>({.in = 3, .out = 8, .kernel = 3, .stride = 2, .relu = true}, initializer);
    model.add<layers::Flatten>();
    model.add<layers::Linear>({.in = 8 * 15 * 15, .out = images.classes()}, initializer);
    comm::DistributedDataParallel replicas(*group, model.named_parameters(), model.named_buffers());
    optim::Adam adam(model.parameters(), {.lr = 1e-3});
    for (std::uint32_t epoch = 0; epoch < 3; ++epoch) {
      for (loader.start(epoch); const auto batch = loader.next(); adam.step()) {
        adam.zero_grad();
        autograd::backward(autograd::softmax_cross_entropy(model(batch->images), batch->labels));
        replicas.finish();
      }
      const double accuracy = train::evaluate(model, loader, *group).accuracy();
      if (group->rank() == 0) fmt::print("epoch {}: {:.1f} % of the images are right\n", epoch + 1, accuracy);
    }
    return 0;
  });
}

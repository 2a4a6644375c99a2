// Data-parallel training by hand: mpirun -np 2 two_ranks. Every rank takes its share of a batch, and all take one step.
#include <tandem/tandem.h>
using namespace tandem;

int main() {
  return comm::run_program([](comm::ProcessGroup& group) {
    const Tensor number = Tensor::full({}, 10.0 * (group.rank() + 1));
    const Tensor all = group.all_gather(number);
    group.all_reduce(Out(number), comm::ReduceOp::average);
    if (group.rank() == 0) fmt::print("{} ranks have {}, the average is {}\n", group.size(), all, number.item());

    const data::ImageDataset images = data::make_synthetic({.count = 1024, .side = 16});
    const data::RankShare share{group.size(), group.rank()};
    data::Loader loader(images, {.global_batch_size = 64, .seed = 1, .shuffle = true, .share = share});
    layers::Initializer random(1 + group.rank());
    layers::Sequential model;
    model.add<layers::Conv2d>({.in = 3, .out = 8, .kernel = 3, .stride = 2, .relu = true}, random);
    model.add<layers::Flatten>();
    model.add<layers::Linear>({.in = 8 * 7 * 7, .out = images.classes()}, random);
    comm::DistributedDataParallel replicas(group, model.named_parameters(), model.named_buffers());
    optim::SGD sgd(model.parameters(), {.lr = 0.1, .momentum = 0.9});

    for (std::uint32_t epoch = 0; epoch < 4; ++epoch) {
      const Tensor sum = Tensor::zeros({});
      for (loader.start(epoch); const auto batch = loader.next();) {
        const Tensor loss = autograd::softmax_cross_entropy(model(batch->images), batch->labels);
        sgd.zero_grad();
        autograd::backward(loss);
        replicas.finish();
        sgd.step();
        sum.fill(sum.item() + loss.item() / loader.batches());
      }
      group.all_reduce(Out(sum), comm::ReduceOp::average);
      if (group.rank() == 0) fmt::print("epoch {}: mean loss {:.4f}\n", epoch + 1, sum.item());
    }
    replicas.check_replicas();
    if (group.rank() == 0) fmt::print("all replicas are the same bits\n");
  });
}

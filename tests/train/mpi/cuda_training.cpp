// A small network trained on a CUDA device, real or simulated, and on the CPU from the same seed: the same losses. Runs
// on any number of ranks.
#include "tandem/autograd/functions.h"
#include "tandem/autograd/variable.h"
#include "tandem/comm/backends/backend.h"
#include "tandem/comm/ddp/distributed_data_parallel.h"
#include "tandem/core/random.h"
#include "tandem/layers/layers.h"
#include "tandem/optim/adam.h"
#include "tandem/optim/sgd.h"
#include "tests/comm/mpi/mpi_test.h"
#include "tests/support/catch.h"
#include "tests/support/cuda_device.h"

#include <cmath>

using namespace tandem;
using namespace tandem::test;

namespace {

constexpr std::int64_t kClasses = 4, kBatch = 8, kSide = 8;
constexpr int kSteps = 30;

/// As small_cnn, in small: fused and plain convolutions, batch norm, pooling, a linear layer.
std::unique_ptr<layers::Sequential> make_network() {
  layers::Initializer initializer(3);
  auto network = std::make_unique<layers::Sequential>();
  const auto same = [](std::int64_t in, std::int64_t out, bool relu) {
    return layers::Conv2dOptions{.in = in, .out = out, .kernel = {3, 3}, .padding = {1, 1}, .bias = relu, .relu = relu};
  };
  network->add<layers::Conv2d>(same(3, 8, true), initializer);
  network->add<layers::Conv2d>(same(8, 8, false), initializer);
  network->add<layers::BatchNorm2d>({.channels = 8});
  network->add<layers::ReLU>();
  network->add<layers::MaxPool2d>(2);
  network->add<layers::Conv2d>(same(8, 16, false), initializer);
  network->add<layers::BatchNorm2d>({.channels = 16});
  network->add<layers::ReLU>();
  network->add<layers::GlobalAvgPool2d>();
  network->add<layers::Flatten>();
  network->add<layers::Linear>({.in = 16, .out = kClasses}, initializer);
  return network;
}

struct Batch {
  Tensor images, labels;
};

/// Noise with a bright quarter; which one is the label.
Batch make_batch(int step, int rank) {
  const RandomKey key{.seed = 5, .stream = RandomStream::test, .step = static_cast<std::uint32_t>(step * 16 + rank)};
  std::vector<float> pixels;
  std::vector<std::int64_t> labels;
  for (std::int64_t n = 0; n < kBatch; ++n) labels.push_back(key.below(static_cast<std::uint64_t>(n), kClasses));
  for (std::int64_t i = 0; i < kBatch * 3 * kSide * kSide; ++i) {
    const std::int64_t x = i % kSide, y = i / kSide % kSide, n = i / (3 * kSide * kSide);
    const bool bright = x / (kSide / 2) + y / (kSide / 2) * 2 == labels[static_cast<std::size_t>(n)];
    pixels.push_back(key.normal(static_cast<std::uint64_t>(100 + i)) + (bright ? 1.5f : 0.0f));
  }
  return {Tensor::from(pixels, {kBatch, 3, kSide, kSide}, Layout::channels_last), Tensor::from(labels, {kBatch})};
}

enum class Method { sgd, adam };

/// The losses of all steps, averaged over the ranks.
std::vector<double> train(comm::ProcessGroup& group, Device device, Method method) {
  const auto network = make_network();
  network->to(device);
  comm::DistributedDataParallel replicas(group, network->named_parameters(), network->named_buffers());
  std::unique_ptr<optim::Optimizer> optimizer;
  if (method == Method::sgd) {
    optimizer = std::make_unique<optim::SGD>(network->parameters(),
                                             optim::SGDOptions{.lr = 0.05, .momentum = 0.9, .weight_decay = 1e-3});
  } else {
    optimizer = std::make_unique<optim::Adam>(network->parameters(), optim::AdamOptions{.lr = 2e-3});
  }
  std::vector<double> losses;
  for (int step = 0; step < kSteps; ++step) {
    const Batch batch = make_batch(step, group.rank());
    const Tensor logits = network->forward(batch.images.to(device));
    const Tensor loss = autograd::softmax_cross_entropy(logits, batch.labels.to(device));
    optimizer->zero_grad();
    autograd::backward(loss);
    replicas.finish();
    optimizer->step();
    const Tensor mean = loss.detach().to(Device{});
    group.all_reduce(Out(mean), comm::ReduceOp::average);
    losses.push_back(mean.item());
  }
  replicas.sync_buffers();
  replicas.check_replicas();
  return losses;
}

}  // namespace

TEST_CASE("training on CUDA follows training on the CPU", "[cuda]") {
  if (!has_gpu()) return;
  const auto group = comm::make_process_group(environment().size() == 1 ? "self" : "native", environment());
  for (const Method method : {Method::sgd, Method::adam}) {
    const std::vector<double> expected = train(*group, Device{}, method), losses = train(*group, kGpu, method);
    CHECK(expected.back() < 0.85 * expected.front());  // it learns
    double largest = 0.0;
    for (int step = 0; step < kSteps; ++step) {
      const auto i = static_cast<std::size_t>(step);
      largest = std::max(largest, std::abs(losses[i] - expected[i]) / expected[i]);
    }
    INFO("losses from " << expected.front() << " to " << expected.back() << ", largest relative difference "
                        << largest);
    CHECK(largest <= 1e-4);
    if (group->rank() == 0)
      fmt::print("{}: loss {:.4f} to {:.4f}, largest relative difference {:.1e}\n",
                 method == Method::sgd ? "sgd" : "adam", expected.front(), expected.back(), largest);
  }
}

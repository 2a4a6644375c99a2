// A forward pass that is recorded once and enqueued for one batch after another.
#include "tandem/autograd/functions/cast.h"
#include "tandem/autograd/grad_mode.h"
#include "tandem/autograd/precision.h"
#include "tandem/core/work_graph.h"
#include "tandem/layers/layers.h"
#include "tests/support/catch.h"
#include "tests/support/cuda_device.h"

#include <cmath>

using namespace tandem;
using namespace tandem::layers;
using namespace tandem::test;

namespace {

constexpr std::int64_t kBatch = 4;

void build(Sequential& network, autograd::Precision precision) {
  Initializer initializer(7);
  network.add<Conv2d>({.in = 3, .out = 8, .kernel = {3, 3}, .padding = {1, 1}, .relu = true}, initializer);
  network.add<MaxPool2d>(2);
  network.add<BatchNorm2d>({.channels = 8});
  network.add<Conv2d>({.in = 8, .out = 8, .kernel = {3, 3}, .padding = {1, 1}}, initializer);
  network.add<GELU>();
  network.add<Flatten>();
  network.add<Linear>({.in = 8 * 4 * 4, .out = 10}, initializer);
  network.set_precision(precision);
  network.to(kGpu);
}

Tensor batch(int number, DType dtype) {
  std::vector<float> values(static_cast<std::size_t>(kBatch * 3 * 8 * 8));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = std::sin(static_cast<float>(i) * (0.37F + 0.11F * static_cast<float>(number)));
  return autograd::cast(Tensor::from(values, {kBatch, 3, 8, 8}, Layout::channels_last, kGpu), dtype);
}

std::vector<float> floats(const Tensor& tensor) { return autograd::cast(tensor, DType::f32).to_vector<float>(); }

/// All buffers on the GPU.
std::vector<float> state_of(const Sequential& network) {
  std::vector<float> all;
  for (const auto& [name, tensor] : network.named_buffers()) {
    if (tensor.device() != kGpu) continue;  // the number of batches, which the host counts
    const std::vector<float> values = floats(tensor);
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

}  // namespace

TEST_CASE("a recorded forward pass has the bits of the eager one, for each batch put into its input", "[cuda]") {
  if (!has_gpu()) return;
  const autograd::NoGrad no_grad;
  for (const auto precision : {autograd::Precision::fp32, autograd::Precision::fp16}) {
    const DType dtype = precision == autograd::Precision::fp32 ? DType::f32 : DType::f16;
    for (const bool training : {false, true}) {
      INFO(autograd::name_of(precision) << (training ? ", training" : ", evaluation"));
      Sequential eager, recorded;
      Tensor first;
      for (Sequential* network : {&eager, &recorded}) {
        build(*network, precision);
        network->train(training);
        first = (*network)(batch(0, dtype));  // what is made at a first call
      }
      const Tensor input = batch(1, dtype);
      const Tensor output = Tensor::zeros(first.shape(), {.dtype = first.dtype(), .device = kGpu});
      const WorkGraph graph(kGpu, [&] { output.copy_from_async(recorded(input)); });
      CHECK(floats(output) == std::vector<float>(kBatch * 10, 0.0F));
      for (int number = 2; number < 5; ++number) {
        input.copy_from(batch(number, dtype));
        graph.launch();
        const std::vector<float> expected = floats(eager(batch(number, dtype)));
        CHECK(floats(output) == expected);
        CHECK(expected[0] != expected[10]);
      }
      CHECK(state_of(recorded) == state_of(eager));
    }
  }
}

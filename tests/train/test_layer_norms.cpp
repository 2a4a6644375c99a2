// Norms of layers against those of their tensors.
#include "tandem/train/layer_norms.h"

#include "tandem/autograd/functions/cast.h"
#include "tandem/autograd/precision.h"
#include "tandem/autograd/variable.h"
#include "tandem/comm/backends/backend.h"
#include "tandem/data/synthetic.h"
#include "tandem/layers/layers.h"
#include "tandem/optim/sgd.h"
#include "tandem/train/trainer.h"
#include "tests/support/catch.h"

#include <cmath>

using namespace tandem;
using namespace tandem::test;
using namespace tandem::train;

namespace {

double norm(const std::vector<double>& values) {
  double sum = 0.0;
  for (const double value : values) sum += value * value;
  return std::sqrt(sum);
}

std::vector<double> values_of(const std::vector<Tensor>& tensors) {
  std::vector<double> all;
  for (const Tensor& tensor : tensors) {
    const auto values = autograd::cast(tensor.detach(), DType::f64).to_vector<double>();
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

struct Run {
  layers::Sequential model;
  std::unique_ptr<optim::SGD> optimizer;
  data::Loader loader;

  explicit Run(DType dtype = DType::f32)
      : loader(data::make_synthetic({.count = 20, .channels = 1, .side = 8, .seed = 3}),
               data::LoaderOptions{.global_batch_size = 8}) {
    layers::Initializer initializer(1);
    model.add<layers::Flatten>();
    model.add<layers::Linear>({.in = 64, .out = 8}, initializer);
    model.add<layers::ReLU>();
    model.add<layers::Linear>({.in = 8, .out = 10}, initializer);
    if (dtype == DType::bf16) model.set_precision(autograd::Precision::bf16);
    optimizer = std::make_unique<optim::SGD>(model.parameters(), optim::SGDOptions{.lr = 0.5});
  }
};

}  // namespace

TEST_CASE("a layer's norms are those of its gradients, updates and weights") {
  const DType dtype = GENERATE(DType::f32, DType::bf16);
  CAPTURE(name_of(dtype));
  Run run(dtype);
  const std::vector<Tensor> parameters = run.model.parameters();
  REQUIRE(parameters.size() == 4);
  std::vector<std::vector<double>> gradients, before;
  for (std::size_t layer = 0; layer < 2; ++layer) {
    for (std::size_t i = 2 * layer; i < 2 * layer + 2; ++i) {
      const Tensor gradient =
          Tensor::full(parameters[i].shape(), 0.25 * static_cast<double>(i + 1), {.dtype = parameters[i].dtype()});
      autograd::set_grad(parameters[i], gradient);
    }
    gradients.push_back(values_of({autograd::grad(parameters[2 * layer]), autograd::grad(parameters[2 * layer + 1])}));
  }
  const auto weights = [&](std::size_t layer) {
    std::vector<Tensor> tensors;
    for (std::size_t i = 2 * layer; i < 2 * layer + 2; ++i)
      tensors.push_back(dtype == DType::f32 ? parameters[i] : run.optimizer->master(i));
    return values_of(tensors);
  };
  before = {weights(0), weights(1)};
  run.optimizer->scale_gradients(0.5);
  const LayerMeter meter(run.model, *run.optimizer);
  run.optimizer->step();
  const std::vector<LayerNorms> norms = meter.norms();
  REQUIRE(norms.size() == 2);
  CHECK(norms[0].name == "1");
  CHECK(norms[1].name == "3");
  for (std::size_t layer = 0; layer < 2; ++layer) {
    CAPTURE(layer);
    std::vector<double> update = weights(layer);
    for (std::size_t i = 0; i < update.size(); ++i) update[i] -= before[layer][i];
    CHECK(norms[layer].gradient_norm == Approx(0.5 * norm(gradients[layer])).epsilon(1e-6));
    CHECK(norms[layer].update_norm == Approx(norm(update)).epsilon(1e-6));
    CHECK(norms[layer].update_norm == Approx(0.25 * norm(gradients[layer])).epsilon(1e-5));
    CHECK(norms[layer].weight_norm == Approx(norm(weights(layer))).epsilon(1e-6));
  }
}

TEST_CASE("a trainer has the norms of an epoch's last step where they are asked for, before clipping") {
  Run run, plain, clipped;
  Trainer trainer(run.model, *run.optimizer, run.loader, {.layer_norms = true});
  Trainer without(plain.model, *plain.optimizer, plain.loader);
  Trainer clipping(clipped.model, *clipped.optimizer, clipped.loader, {.clip_norm = 1e-9, .layer_norms = true});
  std::vector<std::vector<double>> weights;
  const EpochRecord record =
      trainer.fit(1, {.progress = [&](const Progress&) {
                    weights.push_back(values_of({run.model.parameters()[2], run.model.parameters()[3]}));
                  }});
  const std::vector<double> gradient =
      values_of({autograd::grad(run.model.parameters()[2]), autograd::grad(run.model.parameters()[3])});
  REQUIRE(record.layers.size() == 2);
  std::vector<double> update = weights[2];
  for (std::size_t i = 0; i < update.size(); ++i) update[i] -= weights[1][i];
  CHECK(record.layers[1].gradient_norm == Approx(norm(gradient)).epsilon(1e-6));
  CHECK(record.layers[1].update_norm == Approx(norm(update)).epsilon(1e-5));
  CHECK(record.layers[1].weight_norm == Approx(norm(weights[2])).epsilon(1e-6));
  CHECK(without.fit(1).layers.empty());
  CHECK(values_of(plain.model.parameters()) == values_of(run.model.parameters()));
  const EpochRecord small = clipping.fit(1);
  CHECK(small.layers[0].gradient_norm > 1e-3);
  CHECK(small.layers[0].update_norm < 1e-6);
  CHECK(trainer.run_epoch(2, {}).layers[0].update_norm != record.layers[0].update_norm);
}

// Training steps with dropout that are recorded once and launched for one step after another.
#include "tandem/autograd/functions/arithmetic.h"
#include "tandem/autograd/functions/reduce.h"
#include "tandem/autograd/grad_mode.h"
#include "tandem/autograd/variable.h"
#include "tandem/core/work_graph.h"
#include "tandem/layers/layers.h"
#include "tests/support/catch.h"
#include "tests/support/cuda_device.h"
#include "tests/support/error_of.h"

#include <cmath>
#include <set>

using namespace tandem;
using namespace tandem::layers;
using namespace tandem::test;

namespace {

constexpr int kMicroBatches = 2;

/// Dropout and DropPath between layers with weights, trained by plain descent.
struct Training {
  std::shared_ptr<RandomState> state = std::make_shared<RandomState>(7);
  Sequential network;
  Tensor input = Tensor::zeros({6, 9}, {.device = kGpu});
  std::vector<Tensor> outputs;  // of the micro-batches

  Training() {
    Initializer initializer(3);
    network.add<Linear>({.in = 9, .out = 37}, initializer);
    network.add<Dropout>(0.4);
    network.add<Linear>({.in = 37, .out = 11}, initializer);
    network.add<DropPath>(0.3);
    network.to(kGpu);
    network.set_random_state(state);
    for (int i = 0; i < kMicroBatches; ++i) outputs.push_back(Tensor::zeros({6, 11}, {.device = kGpu}));
  }

  /// What host and device do for a step, whose number is set.
  void compute() {
    for (int i = 0; i < kMicroBatches; ++i) {
      if (i > 0) state->advance();
      const Tensor y = network(input);
      outputs[static_cast<std::size_t>(i)].copy_from_async(y.detach());
      autograd::backward(autograd::sum(autograd::mul(y, y)));
    }
    const autograd::NoGrad no_grad;
    for (const Tensor& parameter : network.parameters()) {
      parameter.copy_from_async(autograd::sub(parameter, autograd::scale(autograd::grad(parameter), 0.01)));
      autograd::clear_grad(parameter);
    }
  }

  void set_step(std::uint32_t step) {
    state->set_step(step);
    std::vector<float> values(54);
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = std::sin(static_cast<float>(i) * (0.37F + 0.11F * static_cast<float>(step)));
    input.copy_from(Tensor::from(values, {6, 9}));
  }

  /// Outputs and weights.
  std::vector<float> contents() const {
    std::vector<Tensor> all = outputs;
    for (const Tensor& parameter : network.parameters()) all.push_back(parameter);
    std::vector<float> result;
    for (const Tensor& tensor : all) {
      const std::vector<float> values = tensor.to_vector<float>();
      result.insert(result.end(), values.begin(), values.end());
    }
    return result;
  }
};

}  // namespace

TEST_CASE("recorded steps with dropout have the bits of eager ones, launch after launch", "[cuda][dropout]") {
  if (!has_gpu()) return;
  Training eager, recorded;
  std::unique_ptr<WorkGraph> graph;
  std::set<std::vector<float>> outputs;
  for (std::uint32_t number = 0; number < 7; ++number) {
    CAPTURE(number);
    const std::uint32_t step = kMicroBatches * number;
    for (Training* const training : {&eager, &recorded}) training->set_step(step);
    eager.compute();
    if (number < 2) {
      recorded.compute();
    } else {
      recorded.state->upload();
      if (graph == nullptr) graph = std::make_unique<WorkGraph>(kGpu, [&] { recorded.compute(); });
      graph->launch();
    }
    REQUIRE(recorded.contents() == eager.contents());
    outputs.insert(recorded.contents());
  }
  CHECK(outputs.size() == 7);
  eager.set_step(0);
  recorded.set_step(0);  // and with another input as well; behind a recording eager steps are eager again
  eager.compute();
  recorded.compute();
  CHECK(recorded.contents() == eager.contents());
}

TEST_CASE("launches at one step draw the same numbers, and at others other ones", "[cuda][dropout]") {
  if (!has_gpu()) return;
  Dropout dropout(0.5);
  const auto state = std::make_shared<RandomState>(7);
  dropout.set_random_state(state);
  const Tensor x = Tensor::full({1000}, 1.0, {.device = kGpu}), y = Tensor::zeros({1000}, {.device = kGpu});
  const auto eager = [&](std::uint32_t step) {
    state->set_step(step);
    return dropout(x).to_vector<float>();
  };
  const auto first = eager(4), second = eager(5);
  state->set_step(4);
  state->upload();
  const WorkGraph graph(kGpu, [&] { y.copy_from_async(dropout(x)); });
  const auto launched = [&] {
    graph.launch();
    return y.to_vector<float>();
  };
  CHECK(launched() == first);
  CHECK(launched() == first);
  state->set_step(5);
  CHECK(launched() == first);  // without upload() the step is what it was
  state->upload();
  CHECK(launched() == second);
}

TEST_CASE("a step that is not on the GPU yet is not recorded", "[cuda][dropout]") {
  if (!has_gpu()) return;
  Dropout dropout(0.5);
  const auto state = std::make_shared<RandomState>(7);
  dropout.set_random_state(state);
  const Tensor x = Tensor::full({100}, 1.0, {.device = kGpu}), y = Tensor::zeros({100}, {.device = kGpu});
  const auto record = [&] { return error_of([&] { WorkGraph(kGpu, [&] { y.copy_from_async(dropout(x)); }); }); };
  const std::string refusal =
      "work graph: random state: copying its numbers to cuda:0, as upload() does, cannot be recorded; do it before";
  CHECK_THAT(record(), ContainsText(refusal));
  const Tensor before = dropout(x);
  CHECK(record() == "no error");
  state->advance();
  CHECK_THAT(record(), ContainsText(refusal));
  state->upload();
  CHECK(record() == "no error");
  {
    const StreamScope scope{Stream(kGpu)};
    CHECK_THAT(record(), ContainsText(refusal));
    CHECK_THAT(error_of([&] { state->upload(); }),
               ContainsText("random state: its numbers on cuda:0 are read on another stream than the current one"));
  }
}

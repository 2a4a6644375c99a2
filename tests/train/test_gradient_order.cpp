// Buckets are cut anew behind the first step: a run that goes on must cut them as the run did that was left.
#include "tandem/autograd/functions.h"
#include "tandem/comm/backends/native/native_backend.h"
#include "tandem/data/sampler.h"
#include "tandem/data/synthetic.h"
#include "tandem/layers/layers.h"
#include "tandem/optim/sgd.h"
#include "tandem/train/trainer.h"
#include "tests/comm/thread_ranks.h"
#include "tests/support/catch.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

using namespace tandem;
using namespace tandem::test;

namespace {

constexpr int kRanks = 3;  // of two, sums are the same in any order
constexpr std::string_view kOrder = "trainer.gradient_order";

/// Lists its layers the other way round than it uses them.
class ReversedNet : public layers::Module {
 public:
  explicit ReversedNet(layers::Initializer& initializer)
      : last_(add_module<layers::Linear>("last", {.in = 33, .out = 10}, initializer)),
        first_(add_module<layers::Linear>("first", {.in = 64, .out = 33}, initializer)) {}
  Tensor forward(const Tensor& input) override {
    return last_(autograd::relu(first_(autograd::reshape(input, {input.size(0), 64}))));
  }

 private:
  layers::Linear &last_, &first_;
};

struct Run {
  std::map<std::string, std::vector<double>> weights;
  std::map<std::int64_t, NamedTensors> states;  // behind each step
};

/// Trains two epochs of 4 steps, from `state` on if there is one.
Run run_of(const NamedTensors& state = {}) {
  const auto images = std::make_shared<const data::ImageDataset>(
      data::make_synthetic({.count = 48, .channels = 1, .side = 8, .seed = 3}));
  std::vector<Run> runs(kRanks);
  run_thread_ranks(kRanks, comm::native_options("threads", "ring"), [&](comm::ProcessGroup& group) {
    Run& run = runs[static_cast<std::size_t>(group.rank())];
    layers::Initializer initializer(1);
    ReversedNet model(initializer);
    optim::SGD optimizer(model.parameters(), {.lr = 0.1, .momentum = 0.9});
    data::Loader loader(images, data::DistributedSampler(48, group.size(), group.rank(), true, 1),
                        {.global_batch_size = 12});
    train::Trainer trainer(model, optimizer, loader, {.group = &group, .epochs = 2});
    if (!state.empty()) trainer.load_state_dict(state);
    train::TrainObserver observer;
    observer.progress = [&](const train::Progress&) {
      for (const auto& [name, tensor] : trainer.state_dict())
        run.states[trainer.steps_done()].emplace_back(name, tensor.detach().clone());
    };
    trainer.run(observer);
    for (const auto& [name, parameter] : model.named_parameters()) run.weights[name] = parameter.to_vector<double>();
  });
  return runs.front();
}

NamedTensors with_order(NamedTensors state, const Tensor& order) {
  std::erase_if(state, [](const auto& entry) { return entry.first == kOrder; });
  if (order.defined()) state.emplace_back(kOrder, order);
  return state;
}

Tensor order_in(const NamedTensors& state) {
  const auto found = std::ranges::find(state, kOrder, &NamedTensors::value_type::first);
  return found == state.end() ? Tensor() : found->second;
}

}  // namespace

TEST_CASE("a run of ranks that exchange messages goes on with the same bits, for its state has the buckets' order",
          "[threads]") {
  const Run whole = run_of();
  REQUIRE(whole.states.size() == 8);
  for (const auto& [step, state] : whole.states) {
    CAPTURE(step);
    // Of weights and biases, the last layer's first: not as they are listed.
    const Tensor order = order_in(state);
    REQUIRE(order.defined());
    CHECK(order.to_vector<std::int64_t>() != std::vector<std::int64_t>{3, 2, 1, 0});
    CHECK(run_of(state).weights == whole.weights);
  }
  // Without it, the first step that follows is exchanged by other buckets, and rounded otherwise.
  CHECK(run_of(with_order(whole.states.at(4), {})).weights != whole.weights);
}

TEST_CASE("a state with an order that cannot be is refused, and one of other gradients passed over", "[threads]") {
  const NamedTensors state = run_of().states.at(4);
  const auto i64 = [](const std::vector<std::int64_t>& values) { return Tensor::from(values, {std::ssize(values)}); };
  for (const auto& order : {i64({0, 1, 2, 2}), i64({0, 1, 2, 4})})
    CHECK_THROWS_WITH(run_of(with_order(state, order)), ContainsText("must have each of 0 to 3 once"));
  CHECK_THROWS_WITH(run_of(with_order(state, Tensor::zeros({4}))),
                    ContainsText("trainer.gradient_order of the state must be i64[n], got f32[4]"));
  CHECK(run_of(with_order(state, i64({0, 1, 2}))).weights == run_of(with_order(state, {})).weights);
}

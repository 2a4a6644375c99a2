// Gradients travel while backward is still running: by the order in which things happen.
#include "tandem/autograd/functions.h"
#include "tandem/autograd/record.h"
#include "tandem/autograd/variable.h"
#include "tandem/comm/backends/native/native_backend.h"
#include "tandem/comm/ddp/distributed_data_parallel.h"
#include "tandem/core/allocator.h"
#include "tests/comm/thread_ranks.h"
#include "tests/comm/twin_backend.h"
#include "tests/support/catch.h"

#include <array>
#include <chrono>

using namespace tandem;
using namespace tandem::comm;
using namespace tandem::test;

namespace {

using Events = std::vector<std::string>;

/// A chain of layers with one weight each, whose backward passes are written down beside the exchange.
struct Chain {
  static constexpr int kLayers = 4;

  TwinEvents events;
  ProcessGroup group{std::make_unique<TwinBackend>(events)};
  NamedTensors parameters;
  std::unique_ptr<DistributedDataParallel> ddp;
  std::vector<Tensor> written;  // the gradients of the weights as backward passes make them, last layer first

  /// `listed`: the order in which the weights are given to DistributedDataParallel.
  explicit Chain(const DistributedOptions& options, const std::array<std::size_t, kLayers>& listed = {0, 1, 2, 3}) {
    for (int layer = 0; layer < kLayers; ++layer) {
      parameters.emplace_back(fmt::format("{}.weight", layer), autograd::set_requires_grad(Tensor::zeros({3})));
    }
    NamedTensors given;
    for (const std::size_t layer : listed) given.push_back(parameters[layer]);
    ddp = std::make_unique<DistributedDataParallel>(group, given, NamedTensors{}, options);
    forget();
  }

  void forget() { events = {}; }

  void backward() {
    Tensor y = Tensor::zeros({3});
    for (int layer = 0; layer < kLayers; ++layer) {
      y = autograd::record("layer", {y, parameters[static_cast<std::size_t>(layer)].second}, Tensor::zeros({3}),
                           [this, layer](const autograd::BackwardContext& context) {
                             events.list.push_back(fmt::format("backward {}", layer));
                             const Tensor gradient = context.new_gradient(1);
                             if (gradient.defined()) gradient.fill(layer);  // it is not where the weight is frozen
                             written.push_back(gradient);
                             return std::vector<Tensor>{Tensor::zeros({3}), gradient};
                           });
    }
    autograd::backward(y, Tensor::zeros({3}));
  }
};

}  // namespace

TEST_CASE("a layer's gradients are on their way before the layer below is in backward") {
  Chain chain({.first_bucket_bytes = 0, .bucket_bytes = 0});  // a bucket for each layer
  for (int step = 0; step < 2; ++step) {
    chain.forget();
    chain.backward();
    CHECK(chain.events.list == Events{"backward 3", "all-reduce 0", "backward 2", "all-reduce 1", "backward 1",
                                      "all-reduce 2", "backward 0", "all-reduce 3"});
    // Each gradient that arrives moves on what is under way.
    CHECK(chain.events.polls == std::vector<int>{4, 3, 2, 1});
    chain.events.list.clear();
    chain.ddp->finish();
    CHECK(chain.events.list == Events{"wait 0", "wait 1", "wait 2", "wait 3"});
    for (int layer = 0; layer < Chain::kLayers; ++layer) {
      const Tensor gradient = autograd::grad(chain.parameters[static_cast<std::size_t>(layer)].second);
      CHECK(gradient.to_vector<double>() == std::vector<double>(3, layer));
    }
    for (const auto& [name, parameter] : chain.parameters) autograd::clear_grad(parameter);
  }
}

TEST_CASE("from the second step on buckets go in the order in which the first step's gradients came") {
  Chain chain({.first_bucket_bytes = 0, .bucket_bytes = 0}, {3, 1, 2, 0});
  CHECK(chain.ddp->gradient_order().empty());
  const Events late{"backward 3",   "backward 2",   "backward 1",   "backward 0",
                    "all-reduce 0", "all-reduce 1", "all-reduce 2", "all-reduce 3"};
  const Events early{"backward 3", "all-reduce 0", "backward 2", "all-reduce 1",
                     "backward 1", "all-reduce 2", "backward 0", "all-reduce 3"};
  for (int step = 0; step < 4; ++step) {
    CAPTURE(step);
    chain.forget();
    chain.backward();
    CHECK(chain.events.list == (step == 0 ? late : early));
    chain.ddp->finish();
    CHECK(chain.ddp->gradient_order() == std::vector<std::int64_t>{0, 2, 1, 3});
    CHECK(chain.ddp->bucket_count() == Chain::kLayers);
    for (int layer = 0; layer < Chain::kLayers; ++layer) {
      const Tensor weight = chain.parameters[static_cast<std::size_t>(layer)].second;
      CHECK(autograd::grad(weight).to_vector<double>() == std::vector<double>(3, layer));
      if (step != 1) autograd::clear_grad(weight);  // in the third step they add up
      if (step == 1) autograd::grad(weight).zero();
    }
  }
  CHECK(chain.written.back().is_same(autograd::gradient_place(chain.parameters[0].second)));
}

TEST_CASE("gradients of the first step stay where they are when buckets are cut anew") {
  Chain chain({.first_bucket_bytes = 0, .bucket_bytes = 0}, {3, 2, 1, 0});
  chain.backward();
  chain.ddp->finish();
  const Tensor weight = chain.parameters[2].second, gradient = autograd::grad(weight);
  CHECK_FALSE(gradient.is_same(autograd::gradient_place(weight)));
  // Without zero_grad() the next backward adds to it; the sum is what is exchanged.
  chain.backward();
  chain.ddp->finish();
  CHECK(autograd::grad(weight).to_vector<double>() == std::vector<double>(3, 4.0));
  CHECK(autograd::grad(weight).is_same(autograd::gradient_place(weight)));
}

TEST_CASE("an order that is given holds from the first step on") {
  Chain chain({.first_bucket_bytes = 0, .bucket_bytes = 0}, {3, 2, 1, 0});
  chain.ddp->set_gradient_order({});
  CHECK(chain.ddp->gradient_order().empty());
  chain.ddp->set_gradient_order({0, 1, 2, 3});
  chain.backward();
  CHECK(chain.events.list.at(1) == "all-reduce 0");
  CHECK(chain.events.list.at(2) == "backward 2");
  REQUIRE_THROWS_WITH(chain.ddp->set_gradient_order({3, 2, 1, 0}),
                      ContainsText("under way already; set it before backward"));
  chain.ddp->finish();
  CHECK(chain.ddp->gradient_order() == std::vector<std::int64_t>{0, 1, 2, 3});
  // The order of the start again, which the next step tells.
  chain.ddp->set_gradient_order({});
  CHECK(chain.ddp->gradient_order().empty());
  for (const auto& [name, parameter] : chain.parameters) autograd::clear_grad(parameter);
  chain.forget();
  chain.backward();
  CHECK(chain.events.list.at(1) == "backward 2");
  chain.ddp->finish();
  CHECK(chain.ddp->gradient_order() == std::vector<std::int64_t>{0, 1, 2, 3});
  for (const auto& wrong : {std::vector<std::int64_t>{0, 1, 2}, {0, 1, 2, 2}, {0, 1, 2, 4}, {-1, 1, 2, 3}})
    REQUIRE_THROWS_WITH(chain.ddp->set_gradient_order(wrong), ContainsText("must have each of 0 to 3 once"));
  CHECK(chain.ddp->gradient_order() == std::vector<std::int64_t>{0, 1, 2, 3});
}

TEST_CASE("no bucket waits for the gradient of what was frozen meanwhile") {
  Chain chain({.first_bucket_bytes = 0, .bucket_bytes = 0});
  for (int step = 0; step < 4; ++step) {
    CAPTURE(step);
    if (step == 2) autograd::set_requires_grad(chain.parameters[3].second, false);
    chain.forget();
    chain.backward();
    const Events all{"backward 3", "all-reduce 0", "backward 2", "all-reduce 1",
                     "backward 1", "all-reduce 2", "backward 0", "all-reduce 3"};
    const Events without_last{"backward 3", "backward 2",   "all-reduce 0", "all-reduce 1",
                              "backward 1", "all-reduce 2", "backward 0",   "all-reduce 3"};
    CHECK(chain.events.list == (step < 2 ? all : without_last));
    chain.ddp->finish();
    for (int layer = 0; layer < Chain::kLayers; ++layer) {
      const Tensor weight = chain.parameters[static_cast<std::size_t>(layer)].second;
      const bool is_frozen = layer == 3 && step >= 2;
      REQUIRE(autograd::grad(weight).defined() == !is_frozen);
      if (!is_frozen) CHECK(autograd::grad(weight).to_vector<double>() == std::vector<double>(3, layer));
      autograd::clear_grad(weight);
    }
  }
}

TEST_CASE("an object whose parameters a later one serves does not take them back") {
  Chain chain({.first_bucket_bytes = 0, .bucket_bytes = 0}, {3, 2, 1, 0});
  const Tensor weight = chain.parameters[3].second;
  const DistributedDataParallel later(chain.group, {{"w", weight}}, {});
  const Tensor place = autograd::gradient_place(weight);
  chain.ddp->set_gradient_order({0, 1, 2, 3});
  CHECK(autograd::gradient_place(weight).is_same(place));
}

TEST_CASE("ranks that are given different orders, or sizes on some of them, are told", "[threads]") {
  std::vector<std::string> errors(2), sizes(2);
  const auto text_of = [](const auto& body) {
    try {
      body();
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  run_thread_ranks(2, native_options("threads", "ring"), [&](ProcessGroup& ranks) {
    const auto rank = static_cast<std::size_t>(ranks.rank());
    const NamedTensors weights{{"a", autograd::set_requires_grad(Tensor::full({2}, 1.0))},
                               {"b", autograd::set_requires_grad(Tensor::full({2}, 1.0))}};
    DistributedDataParallel ddp(ranks, weights, {});
    errors[rank] = text_of(
        [&] { ddp.set_gradient_order(rank == 0 ? std::vector<std::int64_t>{0, 1} : std::vector<std::int64_t>{}); });
    sizes[rank] = text_of([&] {
      DistributedOptions options;
      if (rank == 1) options.bucket_bytes = 17;
      const DistributedDataParallel other(ranks, weights, {}, options);
    });
  });
  for (std::size_t rank = 0; rank < 2; ++rank) {
    CHECK_THAT(errors[rank], ContainsText("set_gradient_order's order"));
    CHECK_THAT(sizes[rank], ContainsText("DistributedDataParallel's options"));
  }
}

TEST_CASE("parameters without a gradient come last, and the order is rank 0's first one", "[threads]") {
  std::vector<std::vector<std::int64_t>> orders(3);
  std::vector<std::vector<float>> means(3);
  run_thread_ranks(3, [&](ProcessGroup& ranks) {
    const auto rank = static_cast<std::size_t>(ranks.rank());
    NamedTensors weights;
    for (const char* name : {"a", "b", "c", "d"})
      weights.emplace_back(name, autograd::set_requires_grad(Tensor::full({2}, 1.0)));
    DistributedDataParallel ddp(ranks, weights, {}, {.first_bucket_bytes = 0, .bucket_bytes = 0});
    // Rank 0 has no samples in the first step: its order is known after the second one.
    for (int step = 0; step < 3; ++step) {
      for (const auto& [name, weight] : weights) autograd::clear_grad(weight);
      if (step == 0 && rank == 0) {
        ddp.set_gradient_weight(0.0);
      } else {
        // Not of "c"; other ranks deliver in another order than rank 0.
        const std::size_t last = rank == 0 ? 0 : 1, first = 1 - last;
        const Tensor inner = autograd::mul(weights[3].second, weights[last].second);
        autograd::backward(autograd::sum(autograd::mul(inner, weights[first].second)));
      }
      ddp.finish();
      if (step == 0 && !ddp.gradient_order().empty()) orders[rank] = {-1};
    }
    if (orders[rank].empty()) orders[rank] = ddp.gradient_order();
    means[rank] = autograd::grad(weights[0].second).to_vector<float>();
    if (autograd::grad(weights[2].second).defined()) means[rank].clear();
  });
  for (std::size_t rank = 0; rank < 3; ++rank) {
    REQUIRE(orders[rank].size() == 4);
    CHECK(orders[rank] == orders[0]);
    CHECK(orders[rank].front() == 1);
    CHECK(orders[rank].back() == 2);
    CHECK(means[rank] == std::vector<float>{1.0f, 1.0f});
  }
}

TEST_CASE("what the exchange took is counted, and taken once") {
  Chain chain({.first_bucket_bytes = 0, .bucket_bytes = 0});
  CHECK(chain.ddp->take_totals().steps == 0);
  for (int step = 0; step < 2; ++step) {
    chain.backward();
    chain.ddp->finish();
  }
  const ExchangeTotals totals = chain.ddp->take_totals();
  CHECK(totals.steps == 2);
  // Of each layer 3 floats, which take a unit of kAlignment, and a mark.
  CHECK(totals.bytes == 2 * Chain::kLayers * (kAlignment + 4));
  CHECK(totals.early_bytes == 0);
  CHECK((0.0 < totals.waited_seconds && totals.waited_seconds < totals.seconds));
  CHECK(chain.ddp->take_totals().bytes == 0);
}

TEST_CASE("one rank tells how long backward goes on behind what would be its first bucket") {
  const auto window = [](std::int64_t bucket_bytes, bool synchronises) {
    ProcessGroup alone(make_self_backend());
    NamedTensors weights;
    for (const char* const name : {"below", "above"})
      weights.emplace_back(name, autograd::set_requires_grad(Tensor::zeros({3})));
    DistributedDataParallel ddp(alone, weights, {}, {.first_bucket_bytes = bucket_bytes, .bucket_bytes = bucket_bytes});
    Tensor y = Tensor::zeros({3});
    for (std::size_t layer = 0; layer < 2; ++layer) {
      y = autograd::record("layer", {y, weights[layer].second}, Tensor::zeros({3}),
                           [layer](const autograd::BackwardContext& context) {
                             if (layer == 0) std::this_thread::sleep_for(std::chrono::milliseconds(200));
                             return std::vector<Tensor>{Tensor::zeros({3}), context.new_gradient(1)};
                           });
    }
    if (synchronises) {
      autograd::backward(y, Tensor::zeros({3}));
    } else {
      const auto pause = ddp.no_sync();
      autograd::backward(y, Tensor::zeros({3}));
    }
    ddp.finish();
    const ExchangeTotals totals = ddp.take_totals();
    CHECK((totals.steps == 0 && totals.bytes == 0));
    return totals.window_seconds;
  };
  CHECK(window(0, true) >= 0.2);
  const double of_all = window(1 << 20, true);
  CHECK((of_all > 0.0 && of_all < 0.1));
  CHECK(window(0, false) == 0.0);
}

TEST_CASE("what was averaged before backward ended is counted") {
  Chain chain({.first_bucket_bytes = 0, .bucket_bytes = 0});
  for (int step = 0; step < 2; ++step) {
    chain.forget();
    chain.events.polls_to_completion = 2;
    chain.backward();
    // The bucket of layer 0 is polled once: nothing comes behind it. What is complete is not polled again.
    CHECK(chain.events.polls == std::vector<int>{2, 2, 2, 1});
    chain.ddp->finish();
  }
  const ExchangeTotals totals = chain.ddp->take_totals();
  CHECK(totals.early_bytes == totals.bytes / Chain::kLayers * 3);
}

TEST_CASE("backward writes gradients into buckets, from the first step on, and nothing copies them there") {
  Chain chain({.first_bucket_bytes = 24, .bucket_bytes = 24});  // two layers' weights
  std::vector<const void*> places;
  for (int step = 0; step < 3; ++step) {
    for (const auto& [name, parameter] : chain.parameters) autograd::clear_grad(parameter);
    chain.written.clear();
    const auto allocated = memory_stats().current_of(MemoryTag::gradients);
    chain.backward();
    CHECK(memory_stats().current_of(MemoryTag::gradients) == allocated);
    REQUIRE(chain.written.size() == Chain::kLayers);
    for (std::size_t i = 0; i < chain.written.size(); ++i) {
      const Tensor gradient = autograd::grad(chain.parameters[Chain::kLayers - 1 - i].second);
      CHECK(chain.written[i].is_same(gradient));
      CHECK(gradient.storage()->tag() == MemoryTag::comm);
      CHECK((gradient.storage() == chain.written[i / 2 * 2].storage()));
      if (step == 0) places.push_back(gradient.raw_data());
      CHECK(gradient.raw_data() == places[i]);
    }
    chain.ddp->finish();
  }
}

TEST_CASE("micro-batches add up in the buckets") {
  Chain chain({.first_bucket_bytes = 0, .bucket_bytes = 0});
  for (int step = 0; step < 2; ++step) {
    for (const auto& [name, parameter] : chain.parameters) autograd::clear_grad(parameter);
    {
      const auto scope = chain.ddp->no_sync();
      chain.backward();
      chain.backward();
    }
    const Tensor weight = chain.parameters[2].second, gradient = autograd::grad(weight);
    CHECK(gradient.is_same(autograd::gradient_place(weight)));
    chain.backward();
    chain.ddp->finish();
    CHECK(autograd::grad(weight).is_same(gradient));
    CHECK(gradient.to_vector<double>() == std::vector<double>(3, 6.0));
  }
}

TEST_CASE("gradients outlive the buckets they are in, and the next ones have memory of their own") {
  Chain chain({});
  chain.backward();
  chain.ddp->finish();
  const Tensor weight = chain.parameters[3].second, gradient = autograd::grad(weight);
  chain.ddp = nullptr;
  CHECK_FALSE(autograd::gradient_place(weight).defined());
  CHECK(gradient.to_vector<double>() == std::vector<double>(3, 3.0));
  autograd::clear_grad(weight);
  chain.backward();
  CHECK(autograd::grad(weight).storage() != gradient.storage());
}

TEST_CASE("a bucket of several layers goes with the gradient that fills it, the last one at finish if it stays open") {
  Chain chain({.first_bucket_bytes = 24, .bucket_bytes = 24});  // two layers' weights
  chain.backward();
  const Events both{"backward 3", "backward 2", "all-reduce 0", "backward 1", "backward 0", "all-reduce 1"};
  CHECK(chain.events.list == both);
  chain.ddp->finish();

  Chain uneven({.first_bucket_bytes = 36, .bucket_bytes = 36});  // three and one
  uneven.backward();
  const Events three{"backward 3", "backward 2", "backward 1", "all-reduce 0", "backward 0", "all-reduce 1"};
  CHECK(uneven.events.list == three);
  uneven.ddp->finish();
}

TEST_CASE("within no_sync nothing is sent, and the last micro-batch overlaps again") {
  Chain chain({.first_bucket_bytes = 0, .bucket_bytes = 0});
  {
    const auto scope = chain.ddp->no_sync();
    chain.backward();
    CHECK(chain.events.list == Events{"backward 3", "backward 2", "backward 1", "backward 0"});
  }
  chain.forget();
  chain.backward();
  CHECK(chain.events.list.at(1) == "all-reduce 0");
  CHECK(chain.events.list.at(2) == "backward 2");
  chain.ddp->finish();
}

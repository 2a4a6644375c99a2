// Canonical mode: the same bits on any number of ranks.
#include "tandem/autograd/functions.h"
#include "tandem/autograd/precision.h"
#include "tandem/comm/ddp/hash.h"
#include "tandem/core/parallel.h"
#include "tandem/data/sampler.h"
#include "tandem/data/synthetic.h"
#include "tandem/layers/layers.h"
#include "tandem/optim/sgd.h"
#include "tandem/train/trainer.h"
#include "tests/comm/thread_ranks.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

using namespace tandem;
using namespace tandem::test;

namespace {

constexpr std::int64_t kImages = 45, kBatch = 16, kStepsInEpoch = 3;  // the last of 13 images

struct Choice {
  int micro_batches = 4;
  autograd::Precision precision = autograd::Precision::fp32;
  double ema = 0.0;
  std::int64_t images = kImages;
  std::int64_t batch = kBatch;
};

/// What a run leaves: figures of its steps and epochs, and hashes of all that it keeps.
struct Traces {
  std::vector<double> figures;
  std::vector<std::uint64_t> hashes;

  bool operator==(const Traces&) const = default;
};

double sum_of_outputs(const Tensor& output, const Tensor&) { return autograd::sum(output).item(); }

/// Passes on its input, and has a buffer that it never changes.
class WithConstant final : public layers::Module {
 public:
  WithConstant() { register_buffer("constant", constant_); }
  Tensor forward(const Tensor& input) override { return input; }

 private:
  Tensor constant_ = Tensor::full({3}, 0.1);
};

/// A network with batch norm, dropout, a constant buffer, and all that trains it.
struct Run {
  std::unique_ptr<layers::Sequential> model = std::make_unique<layers::Sequential>();
  std::unique_ptr<optim::SGD> optimizer;
  std::unique_ptr<data::Loader> loader, test;
  std::unique_ptr<train::Trainer> trainer;
  Traces traces;

  Run(const Choice& choice, comm::ProcessGroup& group) {
    layers::Initializer initializer(1);
    model->add<layers::Conv2d>({.in = 1, .out = 6, .kernel = 3, .padding = 1, .bias = false}, initializer);
    model->add<layers::BatchNorm2d>({.channels = 6});
    model->add<layers::ReLU>();
    model->add<layers::Flatten>();
    model->add<layers::Dropout>(0.3);
    model->add<layers::Linear>({.in = 6 * 64, .out = 10}, initializer);
    model->add<WithConstant>();
    model->set_precision(choice.precision);
    optimizer = std::make_unique<optim::SGD>(model->parameters(), optim::SGDOptions{.lr = 0.05, .momentum = 0.9});
    const auto images = std::make_shared<const data::ImageDataset>(
        data::make_synthetic({.count = choice.images, .channels = 1, .side = 8, .seed = 3}));
    const DType dtype = autograd::storage_dtype(choice.precision);
    const data::RankShare share{group.size(), group.rank(), choice.micro_batches};
    loader = std::make_unique<data::Loader>(images, data::LoaderOptions{.global_batch_size = choice.batch,
                                                                        .augment = data::parse_augment("crop=1,flip"),
                                                                        .seed = 5,
                                                                        .shuffle = true,
                                                                        .share = share,
                                                                        .dtype = dtype});
    test = std::make_unique<data::Loader>(images,
                                          data::LoaderOptions{.global_batch_size = 20, .share = share, .dtype = dtype});
    trainer = std::make_unique<train::Trainer>(*model, *optimizer, *loader,
                                               train::TrainerOptions{.test = test.get(),
                                                                     .group = &group,
                                                                     .metrics = {{"outputs", sum_of_outputs}},
                                                                     .clip_norm = 1.0,
                                                                     .ema = choice.ema,
                                                                     .log_every = 1,
                                                                     .seed = 7});
  }

  void fit(std::int64_t epochs, std::function<bool()> stop = {}) {
    train::TrainObserver observer;
    observer.step = [&](const train::StepRecord& step) { traces.figures.push_back(step.loss); };
    observer.epoch = [&](const train::EpochRecord& epoch) {
      for (const double figure : {epoch.train_loss, epoch.train_accuracy, epoch.train_metrics.at(0).second,
                                  epoch.test_loss, epoch.test_accuracy, epoch.test_metrics.at(0).second})
        traces.figures.push_back(figure);
    };
    observer.stop = std::move(stop);
    trainer->fit(epochs, observer);
    traces.hashes.clear();
    for (const auto& [name, tensor] : trainer->state_dict())
      if (name != "trainer.epoch_sums") traces.hashes.push_back(comm::hash_tensor(tensor));
  }
};

/// Of rank 0.
Traces run(int ranks, const Choice& choice = {}) {
  Traces traces;
  run_thread_ranks(ranks, [&](comm::ProcessGroup& group) {
    Run run(choice, group);
    run.fit(2);
    if (group.rank() == 0) traces = run.traces;
  });
  return traces;
}

}  // namespace

TEST_CASE("canonical: weights, state and figures have the same bits on 1, 2 and 4 ranks", "[threads]") {
  const Choice choice = GENERATE(Choice{}, Choice{.micro_batches = 8}, Choice{.precision = autograd::Precision::fp16},
                                 Choice{.precision = autograd::Precision::bf16, .ema = 0.9},
                                 Choice{.images = 2 * kBatch + 1});  // the last step is one image, and three ranks rest
  CAPTURE(choice.micro_batches, autograd::name_of(choice.precision), choice.images);
  const Traces expected = run(1, choice);
  CHECK(expected.figures.size() == 2 * (kStepsInEpoch + 6));
  CHECK(run(2, choice) == expected);
  CHECK(run(4, choice) == expected);
}

TEST_CASE("canonical: without that mode, or in another cut, bits differ", "[threads]") {
  const Traces expected = run(2);
  CHECK(run(2, {.micro_batches = 8}).hashes != expected.hashes);
  CHECK(run(1, {.micro_batches = 0}).hashes != run(2, {.micro_batches = 0}).hashes);
}

TEST_CASE("canonical: the number of threads makes no difference", "[threads]") {
  const int before = num_threads();
  set_num_threads(1);
  const Traces one = run(1);
  set_num_threads(3);
  const Traces three = run(1);
  set_num_threads(before);
  CHECK(one == three);
}

TEST_CASE("canonical: one micro-batch is an ordinary step, but for how running statistics are rounded", "[threads]") {
  const Traces canonical = run(1, {.micro_batches = 1}), plain = run(1, {.micro_batches = 0});
  REQUIRE(canonical.figures.size() == plain.figures.size());
  CHECK(canonical.figures.front() == plain.figures.front());
  for (std::size_t i = 0; i < plain.figures.size(); ++i)
    CHECK(canonical.figures[i] == Approx(plain.figures[i]).epsilon(1e-4));
}

TEST_CASE("canonical: a run that was left goes on on another number of ranks to the same bits", "[threads]") {
  const Traces whole = run(1);
  for (const auto& [before, after] : {std::pair(1, 4), std::pair(2, 1)}) {
    CAPTURE(before, after);
    NamedTensors state;
    Traces first, second;
    run_thread_ranks(before, [&](comm::ProcessGroup& group) {
      Run run({}, group);
      run.fit(2, [&] { return run.trainer->steps_done() == kStepsInEpoch + 2; });
      const NamedTensors mine = run.trainer->state_dict();
      if (group.rank() != 0) return;
      first = run.traces;
      for (const auto& [name, tensor] : mine) state.emplace_back(name, tensor.detach().clone());
    });
    run_thread_ranks(after, [&](comm::ProcessGroup& group) {
      Run run({}, group);
      run.trainer->load_state_dict(state);
      run.fit(1);
      if (group.rank() == 0) second = run.traces;
    });
    CHECK(second.hashes == whole.hashes);
    std::vector<double> figures = first.figures;
    figures.insert(figures.end(), second.figures.begin(), second.figures.end());
    CHECK(figures == whole.figures);
  }
}

TEST_CASE("canonical: a buffer that no forward changes keeps its bits") {
  run_thread_ranks(1, [&](comm::ProcessGroup& group) {
    Run run({}, group);
    run.fit(1);
    bool found = false;
    for (const auto& [name, buffer] : run.model->named_buffers()) {
      if (!name.ends_with("constant")) continue;
      found = true;
      CHECK(buffer.to_vector<float>() == std::vector<float>(3, 0.1f));
    }
    CHECK(found);
  });
}

TEST_CASE("canonical: cuts that make no sense are refused", "[threads]") {
  const auto error = [](int ranks, const Choice& choice) { return error_of([&] { run(ranks, choice); }); };
  CHECK_THAT(error(1, {.micro_batches = 3}), ContainsText("over 1, 2, 4, 8, ... micro-batches, not 3"));
  CHECK_THAT(error(2, {.micro_batches = 3}), ContainsText("sampler: 3 micro-batches cannot be shared by 2 ranks"));
  CHECK_THAT(error(1, {.micro_batches = 32}), ContainsText("a batch of 16 cannot be cut into 32 micro-batches"));
  run_thread_ranks(1, [&](comm::ProcessGroup& group) {
    Run run({}, group);
    CHECK_THAT(error_of([&] {
                 train::Trainer(*run.model, *run.optimizer, *run.loader, {.group = &group, .accumulation = 2});
               }),
               ContainsText("accumulation 2 and 4 micro-batches in canonical mode"));
    const NamedTensors state = run.trainer->state_dict();
    Run plain({.micro_batches = 0}, group);
    CHECK_THAT(error_of([&] { plain.trainer->load_state_dict(state); }),
               ContainsText("the state is of a run with 4 micro-batches in canonical mode, and this one has 0"));
    Run eight({.micro_batches = 8}, group);
    CHECK_THAT(error_of([&] { eight.trainer->load_state_dict(state); }), ContainsText("4 micro-batches"));
  });
}

// Canonical mode: the same bits on any number of ranks.
#include "tandem/autograd/functions.h"
#include "tandem/autograd/precision.h"
#include "tandem/comm/ddp/hash.h"
#include "tandem/core/parallel.h"
#include "tandem/data/collate.h"
#include "tandem/data/sampler.h"
#include "tandem/data/synthetic.h"
#include "tandem/layers/layers.h"
#include "tandem/optim/sgd.h"
#include "tandem/train/trainer.h"
#include "tests/comm/thread_ranks.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

using namespace tandem;
using namespace tandem::test;

namespace {

constexpr std::int64_t kImages = 45, kBatch = 16, kStepsInEpoch = 3;  // the last of 13 images

struct Choice {
  int micro_batches = 4;
  autograd::Precision precision = autograd::Precision::fp32;
  double ema = 0.0;
  std::int64_t lookahead = 0;  // every so many steps
  train::TestTimeAugmentation views = train::TestTimeAugmentation::none;
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
  Tensor constant_ = Tensor::from<float>({0.1f, -0.0f, -std::numeric_limits<float>::infinity()}, {3});
};

/// A network with batch norm, dropout, a constant buffer, and all that trains it.
struct Run {
  std::unique_ptr<layers::Sequential> model = std::make_unique<layers::Sequential>();
  std::shared_ptr<const data::ImageDataset> images;
  std::unique_ptr<optim::SGD> optimizer;
  std::unique_ptr<data::Loader> loader, test;
  std::unique_ptr<train::Trainer> trainer;
  Traces traces;

  Run(const Choice& choice, comm::ProcessGroup& group,
      const std::function<double(const Tensor&, const Tensor&)>& metric = sum_of_outputs) {
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
    images = std::make_shared<const data::ImageDataset>(
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
                                                                     .metrics = {{"outputs", metric}},
                                                                     .clip_norm = 1.0,
                                                                     .ema = choice.ema,
                                                                     .lookahead = {.every = choice.lookahead},
                                                                     .test_time_augmentation = choice.views,
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
    for (const auto& [name, tensor] : trainer->state_dict()) traces.hashes.push_back(comm::hash_tensor(tensor));
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
                                 Choice{.precision = autograd::Precision::fp16, .lookahead = 2},
                                 Choice{.lookahead = 4, .views = train::TestTimeAugmentation::six},
                                 Choice{.images = 2 * kBatch + 1});  // the last step is one image, and three ranks rest
  CAPTURE(choice.micro_batches, autograd::name_of(choice.precision), choice.images, choice.lookahead);
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

TEST_CASE("canonical: one micro-batch is an ordinary step, but for the running statistics, which are rounded otherwise",
          "[threads]") {
  const Traces canonical = run(1, {.micro_batches = 1}), plain = run(1, {.micro_batches = 0});
  REQUIRE(canonical.figures.size() == plain.figures.size());
  for (std::size_t i = 0; i < plain.figures.size(); ++i) {
    const std::size_t in_epoch = i % (kStepsInEpoch + 6);
    CAPTURE(i);
    // Behind the steps: loss, accuracy and metric of training, then of test, which see the running statistics.
    if (in_epoch < kStepsInEpoch + 3) CHECK(canonical.figures[i] == plain.figures[i]);
  }
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
      CHECK(comm::hash_tensor(buffer) ==
            comm::hash_tensor(Tensor::from<float>({0.1f, -0.0f, -std::numeric_limits<float>::infinity()}, {3})));
    }
    CHECK(found);
  });
}

TEST_CASE("canonical: a loss that is not finite ends a run behind the same step on any number of ranks", "[threads]") {
  std::vector<std::int64_t> steps;
  for (const int ranks : {1, 2, 4}) {
    run_thread_ranks(ranks, [&](comm::ProcessGroup& group) {
      Run run({}, group);
      run.optimizer->set_lr(1e30);
      train::TrainObserver observer;
      observer.progress = [&](const train::Progress& now) {
        if (group.rank() == group.size() - 1 && run.trainer->steps_done() == 1 && !std::isfinite(now.loss))
          fail("the progress of the last rank has no loss");
      };
      const train::EpochRecord last = run.trainer->fit(3, observer);
      if (!last.diverged) fail("the run has not ended");
      if (group.rank() == 0) steps.push_back(run.trainer->steps_done());
    });
  }
  CHECK(steps == std::vector<std::int64_t>(3, steps.front()));
}

TEST_CASE("canonical: a metric that throws leaves the model as it was, and training goes on to the same bits",
          "[threads]") {
  std::vector<Traces> all;
  for (const int ranks : {1, 4}) {
    run_thread_ranks(ranks, [&](comm::ProcessGroup& group) {
      bool throws = true;
      Run run({}, group, [&](const Tensor& output, const Tensor&) {
        if (std::exchange(throws, false)) fail("the first batch");
        return autograd::sum(output).item();
      });
      const auto before = run.model->state_dict();
      std::vector<std::uint64_t> hashes, hashes_after;
      for (const auto& [name, tensor] : before) hashes.push_back(comm::hash_tensor(tensor));
      if (error_of([&] { run.fit(1); }).find("the first batch") == std::string::npos) fail("no error");
      for (const auto& [name, tensor] : run.model->state_dict()) hashes_after.push_back(comm::hash_tensor(tensor));
      if (hashes != hashes_after) fail("the model has changed");
      run.traces = {};
      run.fit(1);
      if (group.rank() == 0) all.push_back(run.traces);
    });
  }
  CHECK(all.at(0) == all.at(1));
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
    data::Loader others(run.images, {.share = {1, 0, 2}});
    CHECK_THAT(
        error_of([&] { train::Trainer(*run.model, *run.optimizer, *run.loader, {.test = &others, .group = &group}); }),
        ContainsText("the test loader deals 2 micro-batches, and the training loader 4 (0: none)"));
    CHECK_THAT(error_of([&] {
                 data::Loader(run.images, {.share = {1, 0, 2},
                                           .collate = [](auto examples) { return data::default_collate(examples); }});
               }),
               ContainsText("loader: a collate function sees all examples of a rank"));
    const NamedTensors state = run.trainer->state_dict();
    Run plain({.micro_batches = 0}, group);
    CHECK_THAT(error_of([&] { plain.trainer->load_state_dict(state); }),
               ContainsText("the state is of a run with 4 micro-batches in canonical mode, and this one has 0"));
    Run eight({.micro_batches = 8}, group);
    CHECK_THAT(error_of([&] { eight.trainer->load_state_dict(state); }), ContainsText("4 micro-batches"));
  });
}

// Training on data sets of one's own: other targets than classes, several inputs, streams.
#include "tandem/autograd/functions.h"
#include "tandem/comm/backends/backend.h"
#include "tandem/data/batch.h"
#include "tandem/data/collate.h"
#include "tandem/data/iterable_dataset.h"
#include "tandem/data/make_dataset.h"
#include "tandem/data/sampler.h"
#include "tandem/data/synthetic.h"
#include "tandem/layers/layers.h"
#include "tandem/optim/sgd.h"
#include "tandem/train/evaluation.h"
#include "tandem/train/trainer.h"
#include "tests/comm/thread_ranks.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"

#include <cmath>

using namespace tandem;
using namespace tandem::test;
using train::EpochRecord;
using train::Trainer;
using train::TrainerOptions;

namespace {

/// y = 2 a - b + 0.5
data::Example example_of(std::int64_t i) {
  const float a = static_cast<float>(i % 7) / 7, b = static_cast<float>(i % 5) / 5;
  return {Tensor::from<float>({a, b}, {2}), Tensor::from<float>({2 * a - b + 0.5f}, {1})};
}

Tensor mean_squared_error(const Tensor& output, const Tensor& target) {
  const Tensor difference = autograd::sub(output, target);
  return autograd::mean(autograd::mul(difference, difference));
}

/// A linear model and its optimizer.
struct Line {
  layers::Initializer initializer;
  layers::Linear model;
  optim::SGD optimizer;

  explicit Line(std::uint64_t seed = 1)
      : initializer(seed), model({.in = 2, .out = 1}, initializer), optimizer(model.parameters(), {.lr = 0.5}) {}

  std::vector<float> weights() const { return model.parameters().front().to_vector<float>(); }
};

data::DistributedSampler all_of(std::int64_t size, bool shuffle = true) { return {size, 1, 0, shuffle, 1}; }

/// Two inputs side by side: y = W (a, b).
class TwoInputs final : public layers::Module {
 public:
  explicit TwoInputs(layers::Initializer& initializer) : linear_({.in = 2, .out = 1}, initializer) {
    register_module("linear", linear_);
  }
  Tensor of(const Tensor& a, const Tensor& b) {
    const Tensor columns = Tensor::empty({a.size(0), 2});  // neither needs a gradient
    columns.narrow(1, 0, 1).copy_from(a);
    columns.narrow(1, 1, 1).copy_from(b);
    return linear_(columns);
  }
  std::string describe() const override { return "TwoInputs"; }

 private:
  layers::Linear linear_;
};

}  // namespace

TEST_CASE("a regression learns from a function's examples, and from rows of tensors alike") {
  Line by_function, by_rows;
  data::Loader functions(data::dataset_of(70, example_of), all_of(70), {.global_batch_size = 16, .threads = 2});
  std::vector<data::Example> examples;
  for (std::int64_t i = 0; i < 70; ++i) examples.push_back(example_of(i));
  data::Loader rows(data::dataset_of(data::default_collate(examples)), all_of(70), {.global_batch_size = 16});
  const EpochRecord last =
      Trainer(by_function.model, by_function.optimizer, functions, {.test = &rows, .loss = mean_squared_error}).fit(20);
  CHECK(last.train_loss < 1e-3);
  CHECK(last.test_loss < 1e-3);
  CHECK(std::isnan(last.test_accuracy));
  Trainer(by_rows.model, by_rows.optimizer, rows, {.loss = mean_squared_error}).fit(20);
  CHECK(by_rows.weights() == by_function.weights());
}

TEST_CASE("images one by one train the bits that images in batches train") {
  const auto images = std::make_shared<const data::ImageDataset>(
      data::make_synthetic({.count = 20, .channels = 1, .side = 8, .seed = 3}));
  const auto weights = [&](const std::shared_ptr<const data::Dataset>& set) {
    layers::Initializer initializer(1);
    layers::Sequential model;
    model.add<layers::Conv2d>({.in = 1, .out = 4, .kernel = {3, 3}, .relu = true}, initializer);
    model.add<layers::Flatten>();
    model.add<layers::Linear>({.in = 144, .out = 10}, initializer);
    optim::SGD optimizer(model.parameters(), {.lr = 0.1});
    data::Loader loader(set, all_of(20), {.global_batch_size = 8});
    Trainer(model, optimizer, loader).fit(2);
    return model.parameters().front().to_vector<float>();
  };
  CHECK(weights(data::dataset_of(20, [images](std::int64_t i) { return images->get(i); })) == weights(images));
}

TEST_CASE("a single tensor is input and target") {
  layers::Initializer initializer(1);
  layers::Linear model({.in = 2, .out = 2}, initializer);
  optim::SGD optimizer(model.parameters(), {.lr = 0.5});
  data::Loader loader(data::dataset_of(35, [](std::int64_t i) { return data::Example{example_of(i)[0]}; }), all_of(35),
                      {.global_batch_size = 8});
  CHECK(Trainer(model, optimizer, loader, {.loss = mean_squared_error}).fit(60).train_loss < 1e-2);
}

TEST_CASE("models of several inputs are told what to take by a forward function") {
  layers::Initializer initializer(1);
  TwoInputs model(initializer);
  optim::SGD optimizer(model.parameters(), {.lr = 0.5});
  const auto set = data::transformed(data::dataset_of(70, example_of), [](const data::Example& e) {
    return data::Example{e[0].narrow(0, 0, 1), e[0].narrow(0, 1, 1), e[1]};
  });
  data::Loader loader(set, all_of(70), {.global_batch_size = 16}),
      test(set, all_of(70, false), {.global_batch_size = 16});
  const auto forward = [](layers::Module& module, const data::Batch& batch) {
    return dynamic_cast<TwoInputs&>(module).of(batch.tensors[0], batch.tensors[1]);
  };
  const EpochRecord last =
      Trainer(model, optimizer, loader, {.test = &test, .loss = mean_squared_error, .forward = forward}).fit(20);
  CHECK(last.test_loss < 1e-3);
  CHECK(error_of([&] { Trainer(model, optimizer, loader, {.loss = mean_squared_error}).fit(1); }) ==
        "trainer: batches have 3 tensors (f32[16, 1] first), and a model takes one beside the target; say by a forward "
        "function what it takes (TrainerOptions::forward)");
  const auto nothing = [](layers::Module&, const data::Batch&) { return Tensor(); };
  CHECK(error_of([&] { Trainer(model, optimizer, loader, {.forward = nothing}).fit(1); }) ==
        "trainer: the forward function gave an undefined tensor; return what the loss takes");
}

TEST_CASE("targets that are no classes need a loss function") {
  Line line;
  data::Loader loader(data::dataset_of(8, example_of), all_of(8), {.global_batch_size = 4});
  CHECK(error_of([&] { Trainer(line.model, line.optimizer, loader).fit(1); }) ==
        "trainer: without a loss function it is the cross-entropy of logits [N, C] and classes i64[N], and there are "
        "f32[4, 1] and f32[4, 1]; give one (TrainerOptions::loss)");
}

TEST_CASE("what goes wrong in an example ends training with one error that names it") {
  Line line;
  const auto broken = data::dataset_of(8, [](std::int64_t i) {
    require(i != 5, "line {} of points.csv has no number", i);
    return example_of(i);
  });
  data::Loader loader(broken, all_of(8, false), {.global_batch_size = 4, .threads = 2});
  CHECK(error_of([&] { Trainer(line.model, line.optimizer, loader, {.loss = mean_squared_error}).fit(1); }) ==
        "loader: example 5: line 5 of points.csv has no number");
}

TEST_CASE("a stream with a size is trained as the data set with its examples is") {
  const auto start = [](std::uint32_t) {
    return [i = std::int64_t{0}]() mutable { return std::optional(example_of(i++)); };
  };
  Line by_stream, by_numbers;
  data::Loader stream(data::stream_of(start, 30), data::RankShare{}, {.global_batch_size = 8});
  data::Loader numbers(data::dataset_of(30, example_of), all_of(30, false), {.global_batch_size = 8});
  const TrainerOptions options{.loss = mean_squared_error, .accumulation = 3};
  Trainer(by_stream.model, by_stream.optimizer, stream, options).fit(3);
  Trainer(by_numbers.model, by_numbers.optimizer, numbers, options).fit(3);
  CHECK(by_stream.weights() == by_numbers.weights());
  data::Loader endless(data::stream_of(start), data::RankShare{}, {.global_batch_size = 8});
  CHECK_THAT(error_of([&] { Trainer(by_stream.model, by_stream.optimizer, endless, options).fit(1); }),
             ContainsText("is not known before its end: give it a size"));
}

TEST_CASE("ranks that share a data set of one's own, or a stream, take the steps of one rank", "[threads]") {
  // 22 examples in batches of 4 on 3 ranks: the last batch, of 2, leaves nothing for the third.
  const auto start = [](std::uint32_t) {
    return [i = std::int64_t{0}]() mutable { return std::optional(example_of(i++)); };
  };
  for (const bool of_stream : {false, true}) {
    std::vector<std::vector<float>> weights(3);
    const auto train_on = [&](comm::ProcessGroup* group, int ranks, int rank) {
      Line line(1 + static_cast<std::uint64_t>(rank));
      const data::LoaderOptions options{.global_batch_size = 4};
      auto loader =
          of_stream ? std::make_unique<data::Loader>(data::stream_of(start, 22), data::RankShare{ranks, rank}, options)
                    : std::make_unique<data::Loader>(data::dataset_of(22, example_of),
                                                     data::DistributedSampler(22, ranks, rank, false, 1), options);
      Trainer(line.model, line.optimizer, *loader, {.group = group, .loss = mean_squared_error}).fit(2);
      return line.weights();
    };
    run_thread_ranks(3, [&](comm::ProcessGroup& group) {
      weights[static_cast<std::size_t>(group.rank())] = train_on(&group, 3, group.rank());
    });
    const std::vector<float> alone = train_on(nullptr, 1, 0);
    for (std::size_t i = 0; i < alone.size(); ++i) {
      CHECK(weights[1][i] == weights[0][i]);
      CHECK(weights[2][i] == weights[0][i]);
      CHECK(weights[0][i] == Approx(alone[i]).epsilon(1e-4));
    }
  }
}

TEST_CASE("rows of labels are counted where collate makes several of an example") {
  // Example i is a sequence of i % 3 + 1 rows, all of class i % 2, which their only feature tells.
  const auto set = data::dataset_of(12, [](std::int64_t i) -> data::Example {
    const std::int64_t length = i % 3 + 1;
    return {Tensor::full({length, 1}, i % 2 == 0 ? -1.0 : 1.0),
            Tensor::full({length}, static_cast<double>(i % 2), {.dtype = DType::i64})};
  });
  const data::Collate joined = [](std::span<const data::Example> examples) {
    std::vector<Tensor> inputs, labels;
    for (const data::Example& example : examples) {
      inputs.push_back(example[0]);
      labels.push_back(example[1]);
    }
    return std::vector<Tensor>{autograd::concat(inputs, 0), autograd::concat(labels, 0)};
  };
  data::Loader loader(set, all_of(12, false), {.global_batch_size = 4, .collate = joined});
  layers::Initializer initializer(1);
  layers::Linear model({.in = 1, .out = 2}, initializer);
  optim::SGD optimizer(model.parameters(), {.lr = 1.0});
  Trainer trainer(model, optimizer, loader, {.test = &loader});
  const EpochRecord last = trainer.fit(5);
  CHECK(last.test_accuracy == 100.0);
  CHECK(last.train_accuracy == 100.0);
  comm::ProcessGroup group(comm::make_self_backend());
  const train::Metrics metrics = train::evaluate(model, loader, group);
  CHECK(metrics.count == 24);  // 4 times 1 + 2 + 3
  CHECK(metrics.correct == 24);
}

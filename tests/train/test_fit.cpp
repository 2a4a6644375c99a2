// Trainers that were told little: what they make themselves, a loss, metrics and callbacks of one's own.
#include "tandem/autograd/functions.h"
#include "tandem/autograd/functions/softmax_cross_entropy.h"
#include "tandem/autograd/precision.h"
#include "tandem/comm/backends/backend.h"
#include "tandem/optim/adam.h"
#include "tandem/optim/sgd.h"
#include "tandem/train/evaluation.h"
#include "tandem/train/trainer.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"
#include "tests/train/fit_run.h"

#include <cmath>

using namespace tandem;
using namespace tandem::test;
using train::EpochRecord;
using train::Trainer;
using train::TrainerOptions;

TEST_CASE("what a trainer is not given, it makes: the same bits as with parts of one's own") {
  FitRun told, left_out;
  comm::ProcessGroup group(comm::make_self_backend());
  comm::DistributedDataParallel replicas(group, told.model.named_parameters(), told.model.named_buffers());
  const optim::ConstantSchedule schedule;
  optim::GradScaler scaler;
  Trainer by_parts({told.model, *told.optimizer, schedule, group, replicas, told.loader, &told.test, scaler},
                   {.epochs = 2});
  const EpochRecord expected = by_parts.run({});
  Trainer trainer(left_out.model, *left_out.optimizer, left_out.loader, {.test = &left_out.test});
  const EpochRecord record = trainer.fit(2);
  CHECK(left_out.weights() == told.weights());
  CHECK(record.epoch == 2);
  CHECK(record.train_loss == expected.train_loss);
  CHECK(record.test_loss == expected.test_loss);
  CHECK(record.test_accuracy == expected.test_accuracy);
  CHECK(record.train_metrics.empty());
}

TEST_CASE("losses of the library are given by name, and as lambdas with targets of their own") {
  // Labels as targets of shape [N, 10]: 1 for the class, 0 for the others.
  const auto targets_of = [](const Tensor& output, const Tensor& labels) {
    const Tensor targets = Tensor::zeros(output.shape());
    std::int64_t row = 0;
    for (const std::int64_t label : labels.to_vector<std::int64_t>())
      targets.select(0, row++).narrow(0, label, 1).fill(1.0);
    return targets;
  };
  const train::LossFunction losses[] = {
      [=](const Tensor& output, const Tensor& labels) {
        return autograd::binary_cross_entropy_with_logits(output, targets_of(output, labels));
      },
      [=](const Tensor& output, const Tensor& labels) { return autograd::l1_loss(output, targets_of(output, labels)); },
      [](const Tensor& output, const Tensor& labels) {
        return autograd::nll_loss(autograd::log_softmax(output, 1), labels);
      }};
  for (const train::LossFunction& loss : losses) {
    FitRun run;
    Trainer trainer(run.model, *run.optimizer, run.loader, {.loss = loss});
    const double first = trainer.fit(1).train_loss;
    CHECK(trainer.fit(3).train_loss < first);
  }
  FitRun run;  // whose labels are i64[N], no numbers to come near to
  Trainer trainer(run.model, *run.optimizer, run.loader, {.loss = autograd::mse_loss});
  CHECK(error_of([&] { trainer.fit(1); }) ==
        "mse_loss: needs a floating input and target, got f32[8, 10] and i64[8]; use cast");
}

TEST_CASE("the negative log likelihood of log_softmax trains as cross-entropy does") {
  FitRun built_in, composed;
  Trainer by_default(built_in.model, *built_in.optimizer, built_in.loader);
  Trainer by_name(composed.model, *composed.optimizer, composed.loader,
                  {.loss = [](const Tensor& output, const Tensor& labels) {
                    return autograd::nll_loss(autograd::log_softmax(output, 1), labels);
                  }});
  CHECK(std::abs(by_default.fit(2).train_loss - by_name.fit(2).train_loss) < 1e-5);
}

TEST_CASE("without a test loader nothing is evaluated") {
  FitRun run;
  const EpochRecord record = Trainer(run.model, *run.optimizer, run.loader).fit(1);
  CHECK(std::isfinite(record.train_loss));
  CHECK(std::isnan(record.test_loss));
  CHECK(std::isnan(record.test_accuracy));
}

TEST_CASE("fit goes on where it ended, as one fit of all epochs") {
  FitRun parts, whole;
  const optim::CosineSchedule schedule(4 * 3);
  std::vector<std::int64_t> epochs;
  const train::TrainObserver observer{.epoch = [&](const EpochRecord& record) { epochs.push_back(record.epoch); }};
  Trainer trainer(parts.model, *parts.optimizer, parts.loader, {.schedule = &schedule});
  trainer.fit(1, observer);
  trainer.fit(3, observer);
  CHECK(epochs == std::vector<std::int64_t>{1, 2, 3, 4});
  Trainer(whole.model, *whole.optimizer, whole.loader, {.schedule = &schedule}).fit(4);
  CHECK(parts.weights() == whole.weights());
  CHECK(error_of([&] { trainer.fit(0); }) == "trainer: fit() needs one epoch or more, got 0; evaluate() tests a model");
}

TEST_CASE("run() trains as many epochs as the options say, whatever fit() did before") {
  FitRun run;
  Trainer trainer(run.model, *run.optimizer, run.loader, {.test = &run.test, .epochs = 0});
  trainer.fit(1);
  const auto weights = run.weights();
  trainer.run({});  // evaluates only
  CHECK(run.weights() == weights);
}

TEST_CASE("loaders of other ranks than the group's, and options out of range, are refused") {
  FitRun run, half(2, 1);
  const auto error_with = [&](const TrainerOptions& options) {
    return error_of([&] { Trainer(run.model, *run.optimizer, run.loader, options); });
  };
  CHECK_THAT(error_of([&] { Trainer(half.model, *half.optimizer, half.loader); }),
             ContainsText("the training loader's sampler is that of rank 1 of 2, but this is rank 0 of 1"));
  CHECK_THAT(error_with({.test = &half.test}), ContainsText("the test loader's sampler is that of rank 1 of 2"));
  CHECK_THAT(error_with({.metrics = {{"rows", rows}, {"rows", rows}}}), ContainsText("two metrics are called 'rows'"));
  CHECK_THAT(error_with({.clip_norm = -1.0}), ContainsText("clip_norm -1 must be 0"));
  CHECK_THAT(error_with({.l1 = -1.0}), ContainsText("l1 -1 must be a finite number, 0"));
  CHECK_THAT(error_with({.clip_norm = std::nan("")}), ContainsText("clip_norm nan must be 0"));
  CHECK_THAT(error_with({.log_every = -1}), ContainsText("log_every -1 must be 0"));
  CHECK_THAT(error_with({.label_smoothing = 2.0}), ContainsText("label_smoothing 2 is not between 0 and 1"));
  comm::ProcessGroup group(comm::make_self_backend());
  comm::DistributedDataParallel replicas(group, run.model.named_parameters(), run.model.named_buffers());
  CHECK_THAT(error_with({.replicas = &replicas}), ContainsText("replicas are given without their group"));
}

TEST_CASE("a loss may have dimensions of one element") {
  FitRun run;
  const auto loss = [](const Tensor& output, const Tensor&) {
    return autograd::reshape(energy(output, output), {1, 1});
  };
  const EpochRecord record = Trainer(run.model, *run.optimizer, run.loader, {.loss = loss}).fit(1);
  CHECK(std::isfinite(record.train_loss));
}

TEST_CASE("a loss of one's own is what is trained and reported, in training and test") {
  FitRun run;
  Trainer trainer(run.model, *run.optimizer, run.loader, {.test = &run.test, .loss = energy});
  std::vector<double> losses;
  const EpochRecord last =
      trainer.fit(8, {.epoch = [&](const EpochRecord& record) { losses.push_back(record.train_loss); }});
  CHECK(losses.back() < 0.2 * losses.front());
  CHECK(std::isnan(last.train_accuracy));
  CHECK(std::isnan(last.test_accuracy));
  comm::ProcessGroup group(comm::make_self_backend());
  const train::Scores scores = train::evaluate(run.model, run.test, group, train::Scoring(energy));
  CHECK(last.test_loss == scores.metrics.loss());
  CHECK(scores.metrics.count == 6);
}

TEST_CASE("cross-entropy as a loss of one's own takes the default's steps") {
  FitRun own, usual;
  const auto loss = [](const Tensor& output, const Tensor& labels) {
    return autograd::softmax_cross_entropy(output, labels);
  };
  Trainer(own.model, *own.optimizer, own.loader, {.loss = loss}).fit(2);
  Trainer(usual.model, *usual.optimizer, usual.loader).fit(2);
  CHECK(own.weights() == usual.weights());
}

TEST_CASE("metrics are means over all samples") {
  FitRun run;
  const train::Metric ones{"ones", rows};
  const train::Metric labels{"label", [](const Tensor&, const Tensor& y) {
                               double sum = 0.0;
                               for (const double value : y.to_vector<double>()) sum += value;
                               return sum;
                             }};
  Trainer trainer(run.model, *run.optimizer, run.loader, {.test = &run.test, .metrics = {ones, labels}});
  const EpochRecord record = trainer.fit(1);
  double sum = 0.0;
  run.test.start(0);
  while (const auto batch = run.test.next()) sum += labels.sum(Tensor(), batch->labels);
  REQUIRE(record.test_metrics.size() == 2);
  CHECK(record.test_metrics[0] == std::pair<std::string, double>("ones", 1.0));
  CHECK(record.train_metrics[0].second == 1.0);
  CHECK(record.test_metrics[1].first == "label");
  CHECK(record.test_metrics[1].second == Approx(sum / 6));
}

TEST_CASE("training ends where keep_going says so") {
  FitRun run;
  Trainer trainer(run.model, *run.optimizer, run.loader);
  const EpochRecord last = trainer.fit(10, {.keep_going = [](const EpochRecord& record) { return record.epoch < 3; }});
  CHECK(last.epoch == 3);
}

TEST_CASE("losses and metrics that make no sense are refused in one line") {
  FitRun run;
  const auto with = [&](const TrainerOptions& options) {
    return error_of([&] { Trainer(run.model, *run.optimizer, run.loader, options).fit(1); });
  };
  CHECK(with({.loss = [](const Tensor& output, const Tensor&) { return output; }}) ==
        "trainer: the loss function must return one floating number, the mean over the batch, got f32[8, 10]");
  CHECK(with({.loss = [](const Tensor&, const Tensor&) { return Tensor(); }}) ==
        "trainer: the loss function must return one floating number, the mean over the batch, got undefined tensor");
  CHECK(with({.metrics = {{"nothing", {}}}}) == "trainer: metric 'nothing' needs a name and a function");
  CHECK(with({.loss = energy, .label_smoothing = 0.1}) ==
        "trainer: label_smoothing is of the cross-entropy, and a loss function was given: let that smooth labels");
}

TEST_CASE("steps that would not train the model are refused") {
  FitRun run, other;
  Trainer of_another(run.model, *other.optimizer, run.loader, {.test = &run.test});
  CHECK(error_of([&] { of_another.fit(1); }) ==
        "trainer: none of the optimizer's 2 parameters is one of the model's 2: make it of model.parameters(); "
        "register_parameter() and register_module() make parameters known");
  Trainer detached(run.model, *run.optimizer, run.loader, {.loss = [](const Tensor& output, const Tensor& labels) {
                     return energy(output.detach(), labels);
                   }});
  CHECK_THAT(error_of([&] { detached.fit(1); }), ContainsText("does the loss function detach the output?"));
  run.model.requires_grad(false);
  Trainer frozen(run.model, *run.optimizer, run.loader);
  CHECK_THAT(error_of([&] { frozen.fit(1); }), ContainsText("trainer: the loss does not depend on any parameter"));
}

TEST_CASE("f16 parameters are trained with a loss scale unless another scaler is given") {
  FitRun run;
  run.model.set_precision(autograd::Precision::fp16);
  optim::Adam adam(run.model.parameters(), {.lr = 1e-3});
  CHECK(Trainer(run.model, adam, run.loader).fit(1).loss_scale == 65536.0);
  optim::GradScaler none;
  CHECK(Trainer(run.model, adam, run.loader, {.scaler = &none}).fit(1).loss_scale == 1.0);
  FitRun plain;
  CHECK(Trainer(plain.model, *plain.optimizer, plain.loader).fit(1).loss_scale == 1.0);
}

TEST_CASE("a rate that the program sets is what the schedule goes on from") {
  FitRun run;
  Trainer trainer(run.model, *run.optimizer, run.loader);
  CHECK(trainer.fit(1).lr == 0.1);
  run.optimizer->set_lr(0.02);
  CHECK(trainer.fit(1).lr == 0.02);
  CHECK(trainer.fit(1).lr == 0.02);

  FitRun scheduled;
  const optim::StepSchedule schedule(3, 0.5);  // an epoch has three steps
  Trainer other(scheduled.model, *scheduled.optimizer, scheduled.loader, {.schedule = &schedule});
  CHECK(other.fit(1).lr == 0.1);
  CHECK(other.fit(1).lr == 0.05);
  scheduled.optimizer->set_lr(0.8);
  CHECK(other.fit(1).lr == 0.2);  // 0.8 / 4
  CHECK(other.fit(1).lr == 0.1);

  FitRun resumed;
  Trainer third(resumed.model, *resumed.optimizer, resumed.loader, {.schedule = &schedule});
  third.load_state_dict(trainer.state_dict());
  CHECK(third.fit(1).lr == Approx(0.1 / 8));  // its own base; what the state holds is nobody's choice
}

TEST_CASE("what a metric throws names the metric") {
  FitRun run;
  Trainer trainer(run.model, *run.optimizer, run.loader,
                  {.metrics = {{"right", [](const Tensor& output, const Tensor&) { return output.item(); }}}});
  CHECK(error_of([&] { trainer.fit(1); }) == "metric 'right': item: f32[8, 10] does not hold exactly one element");
}

// What users read of trainers and their options, and of what a run writes.
#include "tandem/autograd/functions.h"
#include "tandem/autograd/variable.h"
#include "tandem/comm/backends/backend.h"
#include "tandem/data/batch.h"
#include "tandem/data/iterable_dataset.h"
#include "tandem/data/make_dataset.h"
#include "tandem/data/sampler.h"
#include "tandem/data/synthetic.h"
#include "tandem/layers/layers.h"
#include "tandem/optim/sgd.h"
#include "tandem/train/checkpoint/checkpointing.h"
#include "tandem/train/evaluation.h"
#include "tandem/train/trainer.h"
#include "tests/errors/bad_calls.h"
#include "tests/support/temporary_directory.h"

#include <cmath>

using namespace tandem;
using namespace tandem::test;
using namespace tandem::train;
using data::Example, data::Loader;

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

/// A classifier of 6 points into 3 classes.
struct Run {
  layers::Initializer initializer{1};
  layers::Linear model{{.in = 2, .out = 3}, initializer};
  optim::SGD optimizer{model.parameters(), {.lr = 0.5}};
  Loader loader{data::dataset_of({Tensor::zeros({6, 2}), Tensor::zeros({6}, {.dtype = DType::i64})}),
                {.global_batch_size = 3, .threads = 0}};
};

std::function<void()> makes(const TrainerOptions& options) {
  return [options] {
    Run run;
    Trainer(run.model, run.optimizer, run.loader, options);
  };
}

/// An epoch of those options.
std::function<void()> trains(const TrainerOptions& options) {
  return [options] {
    Run run;
    Trainer(run.model, run.optimizer, run.loader, options).fit(1);
  };
}

/// An epoch on that data.
std::function<void()> trains_on(const std::shared_ptr<const data::Dataset>& set) {
  return [set] {
    Run run;
    Loader loader(set, {.global_batch_size = 3, .threads = 0});
    Trainer(run.model, run.optimizer, loader).fit(1);
  };
}

std::shared_ptr<const data::Dataset> tensors(std::vector<Tensor> all) { return data::dataset_of(std::move(all)); }

double one(const Tensor&, const Tensor&) { return 1.0; }

/// A state that lacks or has what it should not.
std::function<void()> loads(const std::function<void(NamedTensors&)>& change) {
  return [change] {
    Run run;
    Trainer trainer(run.model, run.optimizer, run.loader);
    NamedTensors state = trainer.state_dict();
    change(state);
    trainer.load_state_dict(state);
  };
}

const Tensor kPoints = Tensor::zeros({6, 2}), kClasses = Tensor::zeros({6}, {.dtype = DType::i64});

}  // namespace

TEST_CASE("errors of trainers' options read as recorded", "[errors]") {
  comm::ProcessGroup group(comm::make_self_backend());
  Run run;
  comm::DistributedDataParallel replicas(group, run.model.named_parameters(), {});
  check_errors(
      "trainer_options",
      {
          {"epochs", makes({.epochs = -1})},
          {"steps", makes({.steps = -5})},
          {"accumulation", makes({.accumulation = 0})},
          {"clip_norm", makes({.clip_norm = -1.0})},
          {"clip_norm, NaN", makes({.clip_norm = kNan})},
          {"label_smoothing", makes({.label_smoothing = 1.5})},
          {"label_smoothing of another loss", makes({.loss = autograd::mse_loss, .label_smoothing = 0.1})},
          {"l1", makes({.l1 = -0.1})},
          {"l1, infinite", makes({.l1 = HUGE_VAL})},
          {"ema", makes({.ema = 1.0})},
          {"ema, negative", makes({.ema = -0.5})},
          {"lookahead", makes({.lookahead = {.every = -1}})},
          {"lookahead, decay", makes({.lookahead = {.every = 5, .decay = 1.5}})},
          {"lookahead, power", makes({.lookahead = {.every = 5, .power = -1.0}})},
          {"evaluate_every 0", makes({.evaluate_every = 0})},
          {"evaluate_every and early stopping", makes({.evaluate_every = 2, .early_stopping = {.patience = 3}})},
          {"lookahead and ema", makes({.ema = 0.9, .lookahead = {.every = 5}})},
          {"views of what are no images",
           [&] {
             const TrainerOptions options{.test = &run.loader, .test_time_augmentation = TestTimeAugmentation::flip};
             Trainer(run.model, run.optimizer, run.loader, options).run({});
           }},
          {"log_every", makes({.log_every = -1})},
          {"early stopping without a test", makes({.early_stopping = {.patience = 2}})},
          {"early stopping, patience", [&] { makes({.test = &run.loader, .early_stopping = {.patience = -2}})(); }},
          {"early stopping, min_delta",
           [&] { makes({.test = &run.loader, .early_stopping = {.patience = 2, .min_delta = -1.0}})(); }},
          {"early stopping by what is not there",
           [&] {
             makes({.test = &run.loader, .early_stopping = {.patience = 2}, .best_by = BestBy::validation_loss})();
           }},
          {"details of another loss", makes({.loss = autograd::mse_loss, .detailed = true})},
          {"replicas without a group", [&] { makes({.replicas = &replicas})(); }},
          {"a metric without a name", makes({.metrics = {{"", one}}})},
          {"a metric without a function", makes({.metrics = {{"ones", nullptr}}})},
          {"two metrics of a name", makes({.metrics = {{"ones", one}, {"ones", one}}})},
      });
}

TEST_CASE("errors of trainers read as recorded", "[errors]") {
  Run run;
  const auto nothing = data::dataset_of(0, [](std::int64_t) { return Example{}; });
  const auto with_share = [&](Loader& loader) { Trainer(run.model, run.optimizer, loader); };
  check_errors(
      "trainer",
      {
          {"a loader of another rank",
           [&] {
             Loader loader(tensors({kPoints, kClasses}), {.share = {.world_size = 2, .rank = 1}});
             with_share(loader);
           }},
          {"a loader without examples", trains_on(nothing)},
          {"a stream without a size",
           [&] {
             Loader loader(data::stream_of([](std::uint32_t) { return [] { return std::optional<Example>(); }; }),
                           data::RankShare{}, {});
             Trainer(run.model, run.optimizer, loader).fit(1);
           }},
          {"an optimizer of other parameters",
           [&] {
             const Tensor other = autograd::set_requires_grad(Tensor::zeros({2}));
             optim::SGD optimizer({other}, {});
             Trainer(run.model, optimizer, run.loader).fit(1);
           }},
          {"a frozen model",
           [] {
             Run frozen;
             frozen.model.requires_grad(false);
             Trainer(frozen.model, frozen.optimizer, frozen.loader).fit(1);
           }},
          {"fit() of no epochs", [&] { Trainer(run.model, run.optimizer, run.loader).fit(0); }},
          {"targets that are no classes", trains_on(tensors({kPoints, Tensor::zeros({6, 1})}))},
          {"a label beyond the classes", trains_on(tensors({kPoints, Tensor::full({6}, 3.0, {.dtype = DType::i64})}))},
          {"inputs of another width", trains_on(tensors({Tensor::zeros({6, 4}), kClasses}))},
          {"three tensors in a batch", trains_on(tensors({kPoints, kPoints, kClasses}))},
          {"a loss of many elements", trains({.loss = [](const Tensor& output, const Tensor&) { return output; }})},
          {"a loss that is undefined", trains({.loss = [](const Tensor&, const Tensor&) { return Tensor(); }})},
          {"a loss that depends on nothing",
           trains({.loss = [](const Tensor& output, const Tensor&) { return autograd::mean(output.detach()); }})},
          {"a forward function that gives nothing",
           trains({.forward = [](layers::Module&, const data::Batch&) { return Tensor(); }})},
          {"a report before there is one", [&] { Trainer(run.model, run.optimizer, run.loader).evaluation_report(); }},
          {"a state without an entry", loads([](NamedTensors& state) {
             std::erase_if(state, [](const auto& entry) { return entry.first == "trainer.steps"; });
           })},
          {"a state with another's entry", loads([](NamedTensors& state) { state.emplace_back("weight", kPoints); })},
          {"a state with an unknown entry",
           loads([](NamedTensors& state) { state.emplace_back("trainer.mood", kPoints); })},
          {"a state with an entry twice", loads([](NamedTensors& state) { state.push_back(state.front()); })},
          {"a state of another batch size",
           [&] {
             Loader other(tensors({kPoints, kClasses}), {.global_batch_size = 2, .threads = 0});
             const NamedTensors state = Trainer(run.model, run.optimizer, other).state_dict();
             Trainer(run.model, run.optimizer, run.loader).load_state_dict(state);
           }},
          {"a state of a run with averages",
           [&] {
             const NamedTensors state = Trainer(run.model, run.optimizer, run.loader, {.ema = 0.9}).state_dict();
             Trainer(run.model, run.optimizer, run.loader).load_state_dict(state);
           }},
          {"a state of a run with slow weights",
           [&] {
             const TrainerOptions options{.lookahead = {.every = 3}};
             const NamedTensors state = Trainer(run.model, run.optimizer, run.loader, options).state_dict();
             Trainer(run.model, run.optimizer, run.loader).load_state_dict(state);
           }},
          {"parse_test_time_augmentation", [] { parse_test_time_augmentation("seven"); }},
          {"parse_early_stopping", [] { parse_early_stopping("soon"); }},
          {"parse_best_by", [] { parse_best_by("accuracy"); }},
      });
}

TEST_CASE("errors of checkpoints read as recorded", "[errors]") {
  const TemporaryDirectory folder;
  comm::ProcessGroup group(comm::make_self_backend());
  Run run;
  Trainer trainer(run.model, run.optimizer, run.loader);
  const CheckpointFolder checkpoints(folder / "checkpoints");
  write_bytes(folder / "file", "x");
  std::filesystem::create_directories(folder / "empty");
  std::filesystem::create_directories(folder / "broken/step_00000007");
  const auto makes = [&](const CheckpointingOptions& options) {
    return [&, options] { Checkpointing(trainer, group, checkpoints, options); };
  };
  const auto resumes = [&](const std::string& path) {
    return [&, path] { Checkpointing(trainer, group, CheckpointFolder("")).resume(path); };
  };
  check_errors("checkpoints",
               {
                   {"parse_checkpoint_interval", [] { parse_checkpoint_interval("often"); }},
                   {"Checkpointing, steps below 0", makes({.every = {.steps = -1}})},
                   {"Checkpointing, seconds below 0", makes({.every = {.seconds = -2.0}})},
                   {"Checkpointing, none kept", makes({.keep = 0})},
                   {"Checkpointing, a file in place of the folder",
                    [&] { Checkpointing(trainer, group, CheckpointFolder(folder / "file")); }},
                   {"Checkpointing, a folder in use",
                    [&] {
                      const auto held = checkpoints.prepare();
                      Checkpointing(trainer, group, checkpoints);
                    }},
                   {"Checkpointing, write() without a folder",
                    [&] { Checkpointing(trainer, group, CheckpointFolder("")).write(); }},
                   {"resume, nothing there", resumes(folder / "none")},
                   {"resume, a file", resumes(folder / "file")},
                   {"CheckpointFolder, none kept", [&] { checkpoints.keep(0); }},
                   {"read_checkpoint, nothing there", [&] { read_checkpoint(folder / "none"); }},
                   {"read_checkpoint, an empty folder", [&] { read_checkpoint(folder / "empty"); }},
                   {"write_checkpoint, an undefined tensor",
                    [&] { write_checkpoint(folder / "one", {.state = {{"model.w", Tensor()}}, .metadata = {}}); }},
                   {"write_checkpoint, a key of ours",
                    [&] { write_checkpoint(folder / "one", {.state = {}, .metadata = {{"xxh3.model.w", "0"}}}); }},
               },
               folder.path().string());
}

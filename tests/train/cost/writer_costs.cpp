// Measures what a run's writers cost, for scripts/measure_writers.py:
//   writer_costs writers FOLDER ROUNDS STEPS BATCH          log, events, progress and histograms, in turns with none of
//   them writer_costs checkpoints FOLDER OPTIMIZER EVERY STEPS   checkpoints of a resnet18, and the steps around them
//   writer_costs copies OPTIMIZER COUNT                     copies of its state, two ways
// Prints one line of JSON for each block of steps, or for each step.
#include "tandem/comm/backends/backend.h"
#include "tandem/comm/process_group.h"
#include "tandem/core/allocator.h"
#include "tandem/core/error.h"
#include "tandem/core/number_text.h"
#include "tandem/core/parallel.h"
#include "tandem/data/loader.h"
#include "tandem/data/synthetic.h"
#include "tandem/layers/models/models.h"
#include "tandem/optim/by_name.h"
#include "tandem/train/checkpoint/checkpointing.h"
#include "tandem/train/reporter.h"
#include "tandem/train/writers/tensorboard/run_events.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <numeric>
#include <random>
#include <string_view>

using namespace tandem;

namespace {

using Clock = std::chrono::steady_clock;

double milliseconds(Clock::duration duration) { return std::chrono::duration<double, std::milli>(duration).count(); }

/// Milliseconds of processor time that all threads of this process have used.
double processor_time() {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return 1e3 * static_cast<double>(now.tv_sec) + 1e-6 * static_cast<double>(now.tv_nsec);
}

/// A network, its optimizer and images of which an epoch has `steps` batches.
struct Run {
  std::unique_ptr<layers::Module> model;
  std::unique_ptr<optim::Optimizer> optimizer;
  std::shared_ptr<const data::ImageDataset> images;
  std::unique_ptr<data::Loader> loader;

  Run(const char* network, const char* optimizer_name, std::int64_t steps, std::int64_t batch) {
    model = layers::make_model({.name = network});
    optimizer = optim::make_optimizer(model->parameters(), {.name = optimizer_name});
    images = std::make_shared<const data::ImageDataset>(data::make_synthetic({.count = steps * batch}));
    loader = std::make_unique<data::Loader>(images, data::LoaderOptions{.global_batch_size = batch, .shuffle = true});
  }
};

enum Writer : unsigned { kLog = 1, kEvents = 2, kProgress = 4, kHistograms = 8 };

struct Choice {
  std::string_view name;
  unsigned writers;
};

constexpr std::array<Choice, 7> kChoices = {{{"none", 0},
                                             {"log", kLog},
                                             {"events", kEvents},
                                             {"progress", kProgress},
                                             {"log, events and progress", kLog | kEvents | kProgress},
                                             {"histograms", kHistograms},
                                             {"all four", kLog | kEvents | kProgress | kHistograms}}};

train::RunRecord described_run() {
  train::RunRecord run;
  run.model = "small_cnn";
  run.dataset = "synthetic";
  return run;
}

/// The writers of one choice, as cifar_train joins them, with a record of each step.
class Writers {
 public:
  Writers(unsigned writers, const std::string& folder, const layers::Module& model, const train::Trainer& trainer)
      : writers_(writers),
        model_(model),
        trainer_(trainer),
        events_(folder, described_run()),
        reporter_({.progress = (writers & kProgress) != 0 ? train::ProgressMode::bar : train::ProgressMode::none,
                   .logs = (writers & kLog) != 0 ? std::vector{folder + "/log.jsonl"} : std::vector<std::string>{},
                   .elapsed = [start = Clock::now()] { return 1e-3 * milliseconds(Clock::now() - start); }}) {
    reporter_.open_logs(described_run());
  }

  train::TrainObserver observer() {
    train::TrainObserver result;
    if ((writers_ & (kLog | kProgress)) != 0) result = reporter_.observer();
    if ((writers_ & kLog) == 0) result.step = {};
    if ((writers_ & kEvents) != 0) {
      const train::TrainObserver inner = result;
      result.step = [this, inner](const train::StepRecord& step) {
        if (inner.step) inner.step(step);
        events_.write(step);
      };
      result.epoch = [this, inner](const train::EpochRecord& epoch) {
        if (inner.epoch) inner.epoch(epoch);
        events_.write(epoch, trainer_.steps_done());
      };
    }
    if ((writers_ & kHistograms) != 0)
      result.epoch = [this, inner = result.epoch](const train::EpochRecord& epoch) {
        if (inner) inner(epoch);
        events_.write_histograms(model_, trainer_.steps_done());
      };
    return result;
  }

 private:
  unsigned writers_;
  const layers::Module& model_;
  const train::Trainer& trainer_;
  train::RunEvents events_;
  train::Reporter reporter_;
};

/// One block of an epoch: time of the process, time on the clock, and of that what passed in the writers.
void measure_block(const Choice& choice, train::Trainer& trainer, Writers& writers, std::int64_t steps) {
  const train::TrainObserver observer = writers.observer();
  train::TrainObserver timed = observer;
  Clock::duration in_writers{};
  const auto add = [&in_writers](const auto& function, const auto& record) {
    if (!function) return;
    const auto begin = Clock::now();
    function(record);
    in_writers += Clock::now() - begin;
  };
  timed.step = [&](const train::StepRecord& step) { add(observer.step, step); };
  timed.progress = [&](const train::Progress& progress) { add(observer.progress, progress); };
  timed.epoch = [&](const train::EpochRecord& epoch) { add(observer.epoch, epoch); };
  const auto begin = Clock::now();
  const double processor = processor_time();
  trainer.fit(1, timed);
  const double used = processor_time() - processor;
  fmt::print(R"({{"writers": "{}", "steps": {}, "processor_ms": {:.4f}, "wall_ms": {:.4f}, "writing_ms": {:.5f}}})"
             "\n",
             choice.name, steps, used, milliseconds(Clock::now() - begin), milliseconds(in_writers));
  std::fflush(stdout);
}

void measure_writers(const std::string& folder, std::int64_t rounds, std::int64_t steps, std::int64_t batch) {
  Run run("small_cnn", "sgd", steps, batch);
  train::Trainer quiet(*run.model, *run.optimizer, *run.loader, {});
  train::Trainer telling(*run.model, *run.optimizer, *run.loader, {.log_every = 1});
  std::vector<std::unique_ptr<Writers>> writers;
  for (std::size_t i = 0; i < kChoices.size(); ++i) {
    const std::string own = fmt::format("{}/{}", folder, i);
    std::filesystem::create_directories(own);
    writers.push_back(std::make_unique<Writers>(kChoices[i].writers, own, *run.model, telling));
  }
  quiet.fit(1);  // allocates and chooses
  telling.fit(1);
  std::vector<std::size_t> order(kChoices.size());
  std::iota(order.begin(), order.end(), 0);
  std::mt19937 random(1);
  for (std::int64_t round = 0; round < rounds; ++round) {
    std::shuffle(order.begin(), order.end(), random);
    for (const std::size_t i : order) measure_block(kChoices[i], i == 0 ? quiet : telling, *writers[i], steps);
  }
}

/// Steps of a resnet18, a checkpoint due behind every `every`-th: how long each step took, and how long checkpoints
/// held up training behind it.
void measure_checkpoints(const std::string& folder, const char* optimizer, std::int64_t every, std::int64_t steps) {
  Run run("resnet18", optimizer, steps, 2);
  comm::ProcessGroup group(comm::make_self_backend());
  train::Trainer trainer(*run.model, *run.optimizer, *run.loader, {.group = &group});
  train::Checkpointing checkpoints(trainer, group, train::CheckpointFolder(folder),
                                   {.every = {.steps = every, .epochs = false}});
  const train::TrainObserver inner = checkpoints.with({});
  Clock::time_point last = Clock::now();
  train::TrainObserver observer;
  observer.progress = [&](const train::Progress& progress) {
    const auto begin = Clock::now();
    inner.progress(progress);
    const auto end = Clock::now();
    fmt::print(R"({{"step": {}, "step_ms": {:.4f}, "due": {}, "delay_ms": {:.4f}}})"
               "\n",
               trainer.steps_done(), milliseconds(begin - last), trainer.steps_done() % every == 0,
               milliseconds(end - begin));
    last = Clock::now();
  };
  trainer.fit(1, observer);
  const std::string problem = checkpoints.finish();
  require(problem.empty(), "{}", problem);
}

/// How long a copy of the state of a resnet18 takes, behind a step each time: into memory that was kept, and into
/// memory asked for anew, tensor by tensor.
void measure_copies(const char* optimizer, std::int64_t rounds) {
  Run run("resnet18", optimizer, rounds, 2);
  train::Trainer trainer(*run.model, *run.optimizer, *run.loader, {});
  train::StateCopy kept;
  train::TrainObserver observer;
  observer.progress = [&](const train::Progress&) {
    const NamedTensors state = trainer.state_dict();
    const auto begin = Clock::now();
    {
      NamedTensors clones;
      for (const auto& [name, tensor] : state) clones.emplace_back(name, tensor.detach().clone());
      fmt::print(R"({{"copy": "clones", "ms": {:.4f}, )", milliseconds(Clock::now() - begin));
    }
    if (kept.tensors().empty()) {
      allocator_for(Device{}).release_cached();
      kept.reserve(state);
    }
    const auto again = Clock::now();
    kept.take(state);
    const double taken = milliseconds(Clock::now() - again);
    std::int64_t bytes = 0;
    for (const auto& [name, tensor] : state) bytes += tensor.numel() * size_of(tensor.dtype());
    fmt::print(R"("kept_ms": {:.4f}, "bytes": {}}})"
               "\n",
               taken, bytes);
  };
  trainer.fit(1, observer);
}

std::int64_t number(const char* text) {
  const std::optional<std::int64_t> value = parse_number<std::int64_t>(text);
  require(value && *value > 0, "writer_costs: '{}' is no number of 1 or more", text);
  return *value;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const std::string_view mode = argc > 1 ? argv[1] : "";
    if (mode == "writers" && argc == 6)
      measure_writers(argv[2], number(argv[3]), number(argv[4]), number(argv[5]));
    else if (mode == "checkpoints" && argc == 6)
      measure_checkpoints(argv[2], argv[3], number(argv[4]), number(argv[5]));
    else if (mode == "copies" && argc == 4)
      measure_copies(argv[2], number(argv[3]));
    else
      fail(
          "usage: writer_costs writers FOLDER ROUNDS STEPS BATCH | checkpoints FOLDER OPTIMIZER EVERY STEPS | "
          "copies OPTIMIZER COUNT");
  } catch (const std::exception& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return 2;
  }
  return 0;
}

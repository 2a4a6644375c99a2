// The checkpoint of a stop, and what it does not wait for: others that are being written, or were copied to be.
#include "tandem/comm/backends/backend.h"
#include "tandem/comm/process_group.h"
#include "tandem/train/checkpoint/checkpointing.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"
#include "tests/train/checkpoint/gate.h"
#include "tests/train/checkpoint/small_run.h"

#include <chrono>
#include <filesystem>
#include <limits>
#include <string>
#include <thread>
#include <utility>

using namespace tandem;
using namespace tandem::test;
using train::CheckpointFolder;
using train::Checkpointing;

namespace {

using Steps = std::vector<std::int64_t>;

/// Weights with which the loss is large.
void spoil(const SmallRun& run, float scale) {
  std::vector<float> values(640);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i * 37 % 101) * scale;
  run.model.parameters().front().detach().copy_from(Tensor::from(values, {10, 64}));
}

/// Trains until behind `stop`; what is begun from step 2 on is not written until the gate is open.
void run_until(std::int64_t stop, SmallRun& run, Checkpointing& checkpoints, train::TrainObserver observer) {
  observer.progress = [&](const train::Progress&) {
    const std::int64_t step = run.trainer->steps_done();
    if (step <= 2) checkpoints.wait();  // for memory, which is asked for behind the first step
    if (step == 2) gate().close();
  };
  observer.stop = [&run, stop] { return run.trainer->steps_done() == stop; };
  run.trainer->run(checkpoints.with(observer));
}

/// The disk goes on when the last one has waited for it a while.
std::string stop(Checkpointing& checkpoints) {
  std::thread opener([] {
    std::this_thread::sleep_for(std::chrono::milliseconds(400));
    gate().open();
  });
  checkpoints.write_last();
  opener.join();
  return checkpoints.finish();
}

}  // namespace

TEST_CASE("a checkpoint that is given up leaves nothing, and is no problem") {
  const TemporaryDirectory directory;
  const NamedTensors state{{"model.weight", Tensor::full({1000}, 1.0)}};
  train::CheckpointWriter writer(CheckpointFolder(directory / "checkpoints"), 2);
  gate().close();
  writer.write(1, {state, {}}, true);
  gate().wait_until_reached();
  writer.cancel();
  gate().open();
  writer.finish();
  CHECK(writer.take_problem().empty());
  CHECK_FALSE(writer.has_written());
  CHECK_FALSE(writer.best().has_value());
  CHECK(std::filesystem::is_empty(writer.folder().path()));
  writer.write(2, {state, {}});
  writer.finish();
  writer.cancel();  // too late
  CHECK(writer.has_written());
  CHECK(writer.folder().steps() == Steps{2});
}

TEST_CASE("at a stop that state alone is written, and neither what is being written nor an epoch's end") {
  comm::ProcessGroup group(comm::make_self_backend());
  const TemporaryDirectory directory;
  const CheckpointFolder folder(directory / "checkpoints");
  SmallRun run(group);
  // Without figures of test no epoch's end is the best.
  Checkpointing checkpoints(*run.trainer, group, folder, {.every = {.steps = 2}, .keep = 100});
  run_until(4, run, checkpoints, {});
  CHECK(stop(checkpoints).empty());
  CHECK(folder.steps() == Steps{4});
  SmallRun whole(group), later(group, 4, 77);
  whole.trainer->run({});
  Checkpointing none(*later.trainer, group, CheckpointFolder(""));
  CHECK(none.resume(folder.path()).steps == 4);
  later.trainer->run({});
  CHECK(later.weights() == whole.weights());
}

TEST_CASE("at a stop the best is written too, copied or being written, and known to the run that goes on") {
  comm::ProcessGroup group(comm::make_self_backend());
  const TemporaryDirectory directory;
  const CheckpointFolder folder(directory / "checkpoints");
  const auto options_keeping = [](std::int64_t keep) {
    return train::CheckpointingOptions{.keep = keep, .best_by = train::BestBy::train_loss};
  };
  const auto [has_worse, is_cut_short] =
      GENERATE(std::pair{false, false}, std::pair{true, false}, std::pair{false, true});
  CAPTURE(has_worse, is_cut_short);
  {
    SmallRun run(group);
    Checkpointing checkpoints(*run.trainer, group, folder, options_keeping(100));
    train::TrainObserver observer;
    observer.epoch = [&, is_worse = has_worse](const train::EpochRecord& epoch) {
      if (is_worse && epoch.epoch == 1) spoil(run, 100.0f);
    };
    run_until(8, run, checkpoints, observer);  // the first epoch's end is being written, the second's is copied
    CHECK(stop(checkpoints).empty());
  }
  const std::int64_t best = has_worse ? 3 : 6;
  CHECK(folder.steps() == Steps{best, 8});
  CHECK(train::read_checkpoint(folder.path_of(8)).metadata["best_step"] == std::to_string(best));
  if (is_cut_short) std::filesystem::remove_all(folder.path_of(best));
  SmallRun later(group);
  Checkpointing checkpoints(*later.trainer, group, folder, options_keeping(1));
  checkpoints.resume(folder.path());
  spoil(later, 100.0f);
  train::TrainObserver observer = waiting_for(checkpoints);
  observer.epoch = [&](const train::EpochRecord& epoch) {
    if (epoch.epoch == 3) spoil(later, 10000.0f);
  };
  later.trainer->run(checkpoints.with(observer));
  CHECK(checkpoints.finish().empty());
  CHECK(folder.steps() == Steps{is_cut_short ? 9 : best, 12});
}

TEST_CASE("at a stop with a state that is not to be written those before it are") {
  comm::ProcessGroup group(comm::make_self_backend());
  const TemporaryDirectory directory;
  const CheckpointFolder folder(directory / "checkpoints");
  SmallRun run(group);
  Checkpointing checkpoints(*run.trainer, group, folder, {.every = {.steps = 2}, .keep = 100});
  run_until(4, run, checkpoints, {});
  run.model.parameters().front().detach().fill(std::numeric_limits<double>::quiet_NaN());
  CHECK_THAT(stop(checkpoints), ContainsText("not written") && ContainsText("NaN"));
  CHECK(folder.steps() == Steps{2, 3});
}

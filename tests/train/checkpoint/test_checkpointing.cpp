// Runs that write checkpoints as they go, and go on from the newest one.
#include "tandem/comm/backends/backend.h"
#include "tandem/comm/backends/native/native_backend.h"
#include "tandem/comm/process_group.h"
#include "tandem/train/checkpoint/checkpointing.h"
#include "tests/comm/thread_ranks.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"
#include "tests/support/temporary_directory.h"
#include "tests/train/checkpoint/small_run.h"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <thread>

using namespace tandem;
using namespace tandem::test;
using train::CheckpointFolder;
using train::Checkpointing;
using train::CheckpointingOptions;
using train::EpochRecord;
using Run = SmallRun;

namespace {

/// What an interrupted run throws.
struct Interruption : std::runtime_error {
  Interruption() : std::runtime_error("interrupted") {}
};

}  // namespace

TEST_CASE("checkpoint intervals are epochs, steps or seconds") {
  using train::parse_checkpoint_interval;
  CHECK(parse_checkpoint_interval("epoch") == train::CheckpointInterval{});
  CHECK(parse_checkpoint_interval("500") == train::CheckpointInterval{.steps = 500});
  CHECK(parse_checkpoint_interval("2.5s") == train::CheckpointInterval{.seconds = 2.5});
  for (const std::string text : {"epoch", "500", "2.5s"}) CHECK(to_string(parse_checkpoint_interval(text)) == text);
  for (const std::string text : {"", "s", "0", "-3", "1.5", "nan", "infs", "5m", "1e30", "epochs"})
    CHECK_THAT(error_of([&] { parse_checkpoint_interval(text); }),
               ContainsText("a checkpoint interval is epoch, a number of steps (500) or of seconds (600s), got"));
}

TEST_CASE("checkpoints are written when they are due, and the newest and the best are kept") {
  comm::ProcessGroup group(comm::make_self_backend());
  const TemporaryDirectory directory;
  const CheckpointFolder folder(directory / "checkpoints");
  std::vector<std::int64_t> expected;
  CheckpointingOptions options{.keep = 100};
  SECTION("epochs") { expected = {3, 6, 9, 12}; }
  SECTION("steps and epochs") {
    options.every.steps = 2;
    expected = {2, 3, 4, 6, 8, 9, 10, 12};
  }
  SECTION("steps alone") {
    options.every = {.steps = 5, .epochs = false};
    expected = {5, 10};
  }
  SECTION("every step, as so little time passes") {
    options.every = {.seconds = 1e-9, .epochs = false};
    expected = {2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};  // behind the first one memory is asked for
  }
  SECTION("never within a run as short") { options.every = {.seconds = 1e6, .epochs = false}; }
  SECTION("two, of which the best is another") {
    options.keep = 1;
    options.best_by = train::BestBy::train_loss;  // which falls
    expected = {12};
  }
  Run run(group);
  std::vector<std::int64_t> told;
  options.before_copy = [&] { told.push_back(run.trainer->steps_done()); };
  Checkpointing checkpoints(*run.trainer, group, folder, options);
  run.trainer->run(checkpoints.with(waiting_for(checkpoints)));
  CHECK(checkpoints.finish().empty());
  CHECK(folder.steps() == expected);
  if (options.keep > 1) CHECK(told == expected);
  checkpoints.write_last();
  CHECK(told.back() == 12);
  CHECK(told.size() == (options.keep > 1 ? expected.size() + 1 : 5));
}

TEST_CASE("the best checkpoint is kept, also by a run that goes on") {
  comm::ProcessGroup group(comm::make_self_backend());
  const TemporaryDirectory directory;
  const CheckpointFolder folder(directory / "checkpoints");
  const CheckpointingOptions options{.keep = 1, .best_by = train::BestBy::train_loss};
  const auto spoiling = [](Run& run, std::int64_t behind) {
    train::TrainObserver observer;
    observer.epoch = [&run, behind](const EpochRecord& epoch) {
      if (epoch.epoch != behind) return;  // then the loss rises
      std::vector<float> values(640);
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i * 37 % 101) * 100;
      run.model.parameters().front().detach().copy_from(Tensor::from(values, {10, 64}));
    };
    return observer;
  };
  {
    Run run(group, 3);
    Checkpointing checkpoints(*run.trainer, group, folder, options);
    run.trainer->run(checkpoints.with(spoiling(run, 2)));
  }
  CHECK(folder.steps() == std::vector<std::int64_t>{6, 9});
  Run run(group, 4);
  SECTION("by the same figure") {
    Checkpointing checkpoints(*run.trainer, group, folder, options);
    CHECK(checkpoints.resume(directory.path().string()).steps == 9);
    run.trainer->run(checkpoints.with({}));
    CHECK(checkpoints.finish().empty());
    CHECK(folder.steps() == std::vector<std::int64_t>{6, 12});
  }
  SECTION("by none where its figure is no number") {
    train::Checkpoint checkpoint = train::read_checkpoint(folder.path_of(9));
    checkpoint.metadata["best_value"] = "nan";
    train::write_checkpoint(folder.path_of(9), checkpoint);
    Checkpointing checkpoints(*run.trainer, group, folder, options);
    CHECK(checkpoints.resume(directory.path().string()).steps == 9);
    run.trainer->run(checkpoints.with({}));
    CHECK(checkpoints.finish().empty());
    CHECK(folder.steps() == std::vector<std::int64_t>{12});
  }
  SECTION("by another figure, for which that one counts no more") {
    Checkpointing checkpoints(*run.trainer, group, folder, {.keep = 1, .best_by = train::BestBy::test_loss});
    CHECK(checkpoints.resume(directory.path().string()).steps == 9);
    run.trainer->run(checkpoints.with({}));
    CHECK(checkpoints.finish().empty());
    CHECK(folder.steps() == std::vector<std::int64_t>{12});
  }
}

TEST_CASE("a run interrupted anywhere goes on from its newest checkpoint with the same bits") {
  comm::ProcessGroup group(comm::make_self_backend());
  Run whole(group);
  whole.trainer->run({});
  for (std::int64_t last = 1; last <= 12; ++last) {
    const TemporaryDirectory directory;
    const CheckpointFolder folder(directory / "checkpoints");
    {
      Run run(group);
      Checkpointing checkpoints(*run.trainer, group, folder, {.every = {.steps = 2}});
      CHECK(checkpoints.resume(directory.path().string()).path.empty());  // none yet
      train::TrainObserver observer;
      observer.progress = [&](const train::Progress&) {
        checkpoints.wait();
        if (run.trainer->steps_done() == last) throw Interruption();
      };
      CHECK_THROWS_AS(run.trainer->run(checkpoints.with(observer)), Interruption);
    }
    Run run(group, 4, 77);
    Checkpointing checkpoints(*run.trainer, group, folder, {.every = {.steps = 2}});
    const train::Resumed resumed = checkpoints.resume(directory.path().string());
    CHECK(resumed.passed_over.empty());
    CHECK(resumed.steps == (folder.steps().empty() ? 0 : folder.steps().back()));
    CHECK(resumed.steps >= last - 2);
    if (resumed.steps == 0) continue;  // other weights, then
    run.trainer->run(checkpoints.with({}));
    CHECK(run.weights() == whole.weights());
  }
}

TEST_CASE("others wait for as long as it takes for a rank that reads a checkpoint") {
  using namespace std::chrono_literals;
  const TemporaryDirectory directory;
  {
    comm::ProcessGroup alone(comm::make_self_backend());
    Run run(alone, 1);
    Checkpointing(*run.trainer, alone, CheckpointFolder(directory / "checkpoints"), {}).write();
  }
  std::vector<std::int64_t> steps(2, -1);
  comm::run_thread_ranks(2, comm::native_options("threads", "auto"), {.timeout = 0.5}, [&](comm::ProcessGroup& group) {
    Run run(group, 1);
    const auto accept = [&](const layers::Metadata&) {
      if (group.rank() == 1) std::this_thread::sleep_for(1500ms);
    };
    Checkpointing checkpoints(*run.trainer, group, CheckpointFolder(""), {.accept = accept});
    steps[static_cast<std::size_t>(group.rank())] = checkpoints.resume(directory / "checkpoints").steps;
  });
  CHECK(steps == std::vector<std::int64_t>{0, 0});
}

TEST_CASE("what resume() cannot use is named") {
  comm::ProcessGroup group(comm::make_self_backend());
  const TemporaryDirectory directory;
  const CheckpointFolder folder(directory / "checkpoints");
  Run run(group);
  Checkpointing checkpoints(*run.trainer, group, folder);
  run.trainer->run(checkpoints.with({}));
  checkpoints.finish();
  const auto weights = run.weights();
  for (const std::int64_t step : {12, 9}) std::filesystem::resize_file(folder.path_of(step) + "/model.safetensors", 40);
  const train::Resumed resumed = checkpoints.resume(directory.path().string());
  CHECK(resumed.path == folder.path_of(6));
  CHECK(resumed.passed_over.size() == 2);
  CHECK(resumed.epochs == 2);
  CHECK(checkpoints.resume(folder.path()).path == folder.path_of(6));
  CHECK(checkpoints.resume(folder.path_of(6)).path == folder.path_of(6));
  // A file of a checkpoint stands for it.
  for (const char* name : {"/model.safetensors", "/training.safetensors"})
    CHECK(checkpoints.resume(folder.path_of(6) + name).path == folder.path_of(6));
  write_bytes(directory / "final.safetensors", "");
  CHECK_THAT(error_of([&] { checkpoints.resume(directory / "final.safetensors"); }),
             ContainsText("final.safetensors: is no file of a checkpoint: name a run's folder"));
  CHECK_THAT(error_of([&] { checkpoints.resume("/dev/null"); }), ContainsText("/dev/null: is no file of a checkpoint"));
  CHECK_THAT(error_of([&] { checkpoints.resume(folder.path_of(12) + "/training.safetensors"); }),
             ContainsText("step-0000000012/model.safetensors"));
  CHECK_THAT(error_of([&] { checkpoints.resume(folder.path_of(12)); }),
             ContainsText("step-0000000012/model.safetensors"));
  CHECK_THAT(error_of([&] { checkpoints.resume(directory / "nothing"); }),
             ContainsText("there is no such folder to go on from"));
  std::filesystem::resize_file(folder.path_of(6) + "/model.safetensors", 40);
  CHECK_THAT(error_of([&] { checkpoints.resume(folder.path()); }),
             ContainsText("none of the 3 checkpoints can be read; the newest: "));
}

TEST_CASE("training goes on where a checkpoint cannot be written, and that is said") {
  comm::ProcessGroup group(comm::make_self_backend());
  const TemporaryDirectory directory;
  const CheckpointFolder folder(directory / "checkpoints");
  std::vector<std::string> problems;
  Run run(group), plain(group);
  Checkpointing checkpoints(*run.trainer, group, folder,
                            {.on_problem = [&](const std::string& problem) { problems.push_back(problem); }});
  train::TrainObserver observer;
  observer.epoch = [&](const EpochRecord& epoch) {
    if (epoch.epoch != 2) return;
    checkpoints.finish();
    std::filesystem::remove_all(folder.path());
    std::ofstream(folder.path()) << "a file in its place";
  };
  run.trainer->run(checkpoints.with(observer));
  plain.trainer->run({});
  CHECK(run.weights() == plain.weights());
  CHECK_THAT(checkpoints.finish(), ContainsText("checkpoints: "));
  CHECK(problems.size() == 1);  // the same each time, and told once
  CHECK_THROWS_WITH(Checkpointing(*run.trainer, group, folder, {.keep = 0}),
                    ContainsText("checkpoints: cannot keep 0; keep 1 or more"));
}

TEST_CASE("ranks write one checkpoint, and go on from it together", "[threads]") {
  const TemporaryDirectory directory;
  const CheckpointFolder folder(directory / "checkpoints");
  std::vector<std::vector<float>> whole(2), resumed(2);
  run_thread_ranks(2, [&](comm::ProcessGroup& group) {
    Run run(group);
    Checkpointing checkpoints(*run.trainer, group, folder, {.every = {.seconds = 1e-9}, .keep = 20});
    run.trainer->run(checkpoints.with(waiting_for(checkpoints)));
    const std::string problem = checkpoints.finish();
    require(problem.empty(), "{}", problem);
    whole[static_cast<std::size_t>(group.rank())] = run.weights();
  });
  CHECK(folder.steps().size() == 11);
  for (const std::int64_t step : {12, 11, 10, 9, 8}) std::filesystem::remove_all(folder.path_of(step));
  run_thread_ranks(2, [&](comm::ProcessGroup& group) {
    Run run(group, 4, 9);
    Checkpointing checkpoints(*run.trainer, group, folder);
    require(checkpoints.resume(folder.path()).steps == 7, "resumed elsewhere");
    run.trainer->run(checkpoints.with({}));
    resumed[static_cast<std::size_t>(group.rank())] = run.weights();
  });
  CHECK(resumed == whole);
}

TEST_CASE("the time of an epoch that was left in its middle goes on with it") {
  comm::ProcessGroup group(comm::make_self_backend());
  const TemporaryDirectory directory;
  const CheckpointFolder folder(directory / "checkpoints");
  const CheckpointingOptions options{.every = {.steps = 1}, .keep = 100};
  const auto seconds_in = [&](std::int64_t step) {
    return std::stod(train::read_checkpoint(folder.path_of(step)).metadata.at("epoch_seconds"));
  };
  const auto run_up_to = [&](std::int64_t step, std::vector<double>& seconds) {
    Run run(group);
    Checkpointing checkpoints(*run.trainer, group, folder, options);
    checkpoints.resume(directory.path().string());
    train::TrainObserver observer = waiting_for(checkpoints);
    observer.epoch = [&](const EpochRecord& epoch) { seconds.push_back(epoch.seconds); };
    observer.stop = [&] { return run.trainer->steps_done() == step; };
    const EpochRecord last = run.trainer->run(checkpoints.with(observer));
    if (step > 0) checkpoints.write();  // behind a first step none is: its memory is asked for
    CHECK(checkpoints.finish().empty());
    return last;
  };
  std::vector<double> seconds;
  run_up_to(4, seconds);
  CHECK(seconds_in(2) > 0.0);
  CHECK(seconds_in(3) == 0.0);  // between two epochs
  CHECK(seconds_in(4) > 0.0);
  const auto set = [&](const std::string& text) {
    train::Checkpoint checkpoint = train::read_checkpoint(folder.path_of(4));
    if (text.empty())
      checkpoint.metadata.erase("epoch_seconds");
    else
      checkpoint.metadata["epoch_seconds"] = text;
    train::write_checkpoint(folder.path_of(4), checkpoint);
  };
  seconds.clear();
  SECTION("through several stops, into that epoch's record alone") {
    set("1000");
    CHECK(run_up_to(5, seconds).seconds >= 1000.0);
    CHECK(seconds_in(5) >= 1000.0);
    run_up_to(-1, seconds);
    REQUIRE(seconds.size() == 3);
    CHECK(seconds[0] >= 1000.0);
    CHECK(seconds[0] < 2000.0);
    CHECK(seconds[1] < 1000.0);
    CHECK(seconds[2] < 1000.0);
  }
  SECTION("and is only that of the rest where a checkpoint does not tell, or no time") {
    const std::string text = GENERATE("", "x", "-2000", "nan", "inf");
    CAPTURE(text);
    set(text);
    run_up_to(-1, seconds);
    REQUIRE(seconds.size() == 3);
    CHECK(seconds[0] > 0.0);
    CHECK(seconds[0] < 1000.0);
  }
  SECTION("also in one process") {
    Run run(group);
    run.trainer->set_epoch_seconds(5.0);  // of no epoch that is gone on with
    std::vector<EpochRecord> records;
    bool may_stop = true;
    const train::TrainObserver observer{.epoch = [&](const EpochRecord& epoch) { records.push_back(epoch); },
                                        .stop = [&] { return may_stop && run.trainer->steps_done() == 1; }};
    const EpochRecord stopped = run.trainer->run(observer);
    CHECK(stopped.seconds < 5.0);
    CHECK(run.trainer->epoch_seconds() == stopped.seconds);
    run.trainer->set_epoch_seconds(1000.0);
    may_stop = false;
    run.trainer->run(observer);
    REQUIRE(records.size() == 4);
    CHECK(records[0].seconds >= 1000.0);
    CHECK(records[1].seconds < 1000.0);
    CHECK(run.trainer->epoch_seconds() == 0.0);
  }
}

// Checkpoints that fall due while the one before is still being written: fsync() of this program waits for a gate.
#include "tandem/comm/backends/backend.h"
#include "tandem/comm/process_group.h"
#include "tandem/core/memory.h"
#include "tandem/train/checkpoint/checkpointing.h"
#include "tests/comm/thread_ranks.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"
#include "tests/train/checkpoint/gate.h"
#include "tests/train/checkpoint/small_run.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <thread>

using namespace tandem;
using namespace tandem::test;
using train::CheckpointFolder;
using train::Checkpointing;
using train::EpochRecord;

namespace {

using Steps = std::vector<std::int64_t>;

/// The disk takes until step `until` for what is begun from step 2 on. All that comes later is waited for, so that it
/// is not put off.
train::TrainObserver slow_until(std::int64_t until, const SmallRun& run, Checkpointing& checkpoints) {
  train::TrainObserver observer;
  observer.progress = [&run, &checkpoints, until](const train::Progress&) {
    const std::int64_t step = run.trainer->steps_done();
    if (step == until) gate().open();
    if (step <= 2 || step >= until) checkpoints.wait();  // also for memory, which is asked for behind the first step
    if (step == 2) gate().close();
  };
  return observer;
}

/// Runs it to its end; true if no step waited for the disk.
bool passes_by(SmallRun& run, Checkpointing& checkpoints, const train::TrainObserver& observer) {
  run.trainer->run(checkpoints.with(observer));
  const std::string problem = checkpoints.finish();
  require(problem.empty(), "{}", problem);
  return !gate().was_waited_for();
}

#ifndef __SANITIZE_ADDRESS__  // which needs address space itself
/// The process gets no more than so many further bytes of addresses, while this lives.
class AddressSpaceLimit {
 public:
  explicit AddressSpaceLimit(std::int64_t more_bytes) {
    std::ifstream file("/proc/self/statm");
    rlim_t pages = 0;
    file >> pages;
    REQUIRE(getrlimit(RLIMIT_AS, &before_) == 0);
    rlimit limit = before_;
    limit.rlim_cur = pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) + static_cast<rlim_t>(more_bytes);
    REQUIRE(setrlimit(RLIMIT_AS, &limit) == 0);
  }
  ~AddressSpaceLimit() { setrlimit(RLIMIT_AS, &before_); }
  AddressSpaceLimit(const AddressSpaceLimit&) = delete;
  AddressSpaceLimit& operator=(const AddressSpaceLimit&) = delete;

 private:
  rlimit before_{};
};
#endif

}  // namespace

tandem::test::Gate& tandem::test::gate() {
  static Gate one;
  return one;
}

extern "C" int fsync(int descriptor) {
  gate().pass();
  return static_cast<int>(::syscall(SYS_fsync, descriptor));
}

TEST_CASE("checkpoints by steps and by time are put off while the one before is being written") {
  comm::ProcessGroup group(comm::make_self_backend());
  const TemporaryDirectory directory;
  const CheckpointFolder folder(directory / "checkpoints");
  SmallRun run(group);
  train::CheckpointingOptions options{.every = {.steps = 2, .epochs = false}, .keep = 100};
  Steps expected{2, 7, 8, 10, 12};
  SECTION("by steps") {}
  SECTION("by time") {
    options.every = {.seconds = 1e-9, .epochs = false};
    expected = {2, 7, 8, 9, 10, 11, 12};
  }
  Checkpointing checkpoints(*run.trainer, group, folder, options);
  CHECK(passes_by(run, checkpoints, slow_until(7, run, checkpoints)));
  CHECK(folder.steps() == expected);
}

TEST_CASE("an epoch's end is written as it was, behind what is being written then") {
  comm::ProcessGroup group(comm::make_self_backend());
  const TemporaryDirectory directory;
  const CheckpointFolder folder(directory / "checkpoints");
  SmallRun whole(group), run(group);
  whole.trainer->run({});
  Checkpointing checkpoints(*run.trainer, group, folder, {.every = {.steps = 2}, .keep = 100});
  CHECK(passes_by(run, checkpoints, slow_until(5, run, checkpoints)));
  CHECK(run.weights() == whole.weights());
  CHECK(folder.steps() == Steps{2, 3, 5, 6, 8, 9, 10, 12});
  for (const std::int64_t step : {2, 3, 5}) {
    SmallRun later(group, 4, 77);
    Checkpointing none(*later.trainer, group, CheckpointFolder(""));
    CHECK(none.resume(folder.path_of(step)).steps == step);
    later.trainer->run({});
    CHECK(later.weights() == whole.weights());
  }
}

TEST_CASE("the best is known among ends of epochs that wait for the disk") {
  comm::ProcessGroup group(comm::make_self_backend());
  const TemporaryDirectory directory;
  const CheckpointFolder folder(directory / "checkpoints");
  SmallRun run(group);
  Checkpointing checkpoints(*run.trainer, group, folder, {.keep = 1, .best_by = train::BestBy::train_loss});
  train::TrainObserver observer;
  observer.epoch = [&](const EpochRecord& epoch) {
    if (epoch.epoch == 2) {  // then the loss rises
      std::vector<float> values(640);
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i * 37 % 101) * 100;
      run.model.parameters().front().detach().copy_from(Tensor::from(values, {10, 64}));
    }
    // The first epoch's end is being written, the second's is copied: the third's has to wait for the first's.
    if (epoch.epoch == 3) {
      CHECK(folder.steps().empty());
      gate().open();
    }
  };
  gate().close();
  CHECK(passes_by(run, checkpoints, observer));
  CHECK(folder.steps() == Steps{6, 12});
}

TEST_CASE("memory for a copy beside what is being written is asked for in advance") {
  const TemporaryDirectory directory;
  const NamedTensors state{{"model.weight", Tensor::full({1000, 300}, 1.0)}};
  for (const bool twice : {true, false}) {
    train::CheckpointWriter writer(CheckpointFolder(directory / (twice ? "twice" : "once")), 2);
    writer.prepare(state, twice);
    writer.finish();
    gate().close();
    writer.take(state);
    writer.begin(1, {});
    gate().wait_until_reached();
    CHECK(!writer.is_free());
    const std::int64_t before = memory_stats().current_total;
    writer.take({{"model.weight", Tensor::full({1000, 300}, 2.0)}});
    CHECK(memory_stats().current_total - before == (twice ? 0 : 1'200'000));
    gate().open();
    writer.begin(2, {});
    writer.finish();
    CHECK(writer.is_free());
    CHECK(writer.take_problem().empty());
    for (const std::int64_t step : {1, 2}) {
      const train::Checkpoint read = train::read_checkpoint(writer.folder().path_of(step));
      CHECK(read.state.front().second.to_vector<float>().back() == static_cast<float>(step));
    }
  }
}

#ifndef __SANITIZE_ADDRESS__
TEST_CASE("where there is no memory for a second copy, it is made when the first is written") {
  constexpr std::int64_t kCount = 24 << 20;  // 96 MiB
  const auto state_of = [](double value) { return NamedTensors{{"model.weight", Tensor::full({kCount}, value)}}; };
  const TemporaryDirectory directory;
  train::CheckpointWriter writer(CheckpointFolder(directory / "checkpoints"), 2);
  gate().close();
  writer.take(state_of(1.0));
  writer.begin(1, {});
  gate().wait_until_reached();
  const NamedTensors second = state_of(2.0);
  std::thread opener([] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    gate().open();
  });
  {
    const AddressSpaceLimit limit(kCount * 2);
    writer.take(second);  // waits
  }
  CHECK(writer.is_free());
  opener.join();
  writer.begin(2, {});
  writer.finish();
  CHECK(writer.take_problem().empty());
  for (const std::int64_t step : {1, 2}) {
    const train::Checkpoint read = train::read_checkpoint(writer.folder().path_of(step));
    CHECK(read.state.front().second.narrow(0, kCount - 1, 1).item() == static_cast<double>(step));
  }
}
#endif

TEST_CASE("what is copied is written also where a run is given up") {
  comm::ProcessGroup group(comm::make_self_backend());
  const TemporaryDirectory directory;
  const CheckpointFolder folder(directory / "checkpoints");
  {
    SmallRun run(group);
    Checkpointing checkpoints(*run.trainer, group, folder, {.every = {.steps = 2}});
    train::TrainObserver observer = slow_until(5, run, checkpoints);
    observer.stop = [&] { return run.trainer->steps_done() == 4; };
    run.trainer->run(checkpoints.with(observer));
    CHECK(folder.steps().empty());
    gate().open();
  }
  CHECK(folder.steps() == Steps{2, 3});
}

TEST_CASE("ranks put off a checkpoint together, for the rank that writes", "[threads]") {
  const TemporaryDirectory directory;
  const CheckpointFolder folder(directory / "checkpoints");
  std::vector<int> passed(2);
  run_thread_ranks(2, [&](comm::ProcessGroup& group) {
    SmallRun run(group);
    Checkpointing checkpoints(*run.trainer, group, folder, {.every = {.steps = 2, .epochs = false}, .keep = 100});
    const train::TrainObserver observer = group.rank() == 0 ? slow_until(7, run, checkpoints) : train::TrainObserver();
    passed[static_cast<std::size_t>(group.rank())] = passes_by(run, checkpoints, observer) ? 1 : 0;
  });
  CHECK(passed == std::vector<int>{1, 1});
  CHECK(folder.steps() == Steps{2, 7, 8, 10, 12});
}

// Checkpoints of more than one run, or of another course of the same one, in one folder.
#include "tandem/comm/backends/backend.h"
#include "tandem/comm/process_group.h"
#include "tandem/train/checkpoint/checkpointing.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"
#include "tests/support/forked.h"
#include "tests/support/temporary_directory.h"
#include "tests/train/checkpoint/small_run.h"

#include <cmath>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

using namespace tandem;
using namespace tandem::test;
using train::CheckpointFolder;
using train::Checkpointing;
using train::CheckpointingOptions;
using train::EpochRecord;

namespace fs = std::filesystem;

namespace {

using Steps = std::vector<std::int64_t>;

/// Runs it to its end; its checkpoints are then in `folder`.
void fill(const CheckpointFolder& folder, comm::ProcessGroup& group, const CheckpointingOptions& options = {}) {
  SmallRun run(group);
  Checkpointing checkpoints(*run.trainer, group, folder, options);
  run.trainer->run(checkpoints.with({}));
  REQUIRE(checkpoints.finish().empty());
}

}  // namespace

TEST_CASE("checkpoints behind a damaged one are kept, and take its place") {
  comm::ProcessGroup group(comm::make_self_backend());
  const TemporaryDirectory directory;
  const CheckpointFolder folder(directory / "checkpoints");
  fill(folder, group, {.keep = 2});
  REQUIRE(folder.steps() == Steps{9, 12});
  fs::resize_file(folder.path_of(12) + "/model.safetensors", 40);
  SmallRun run(group);
  Checkpointing checkpoints(*run.trainer, group, folder, {.every = {.steps = 1, .epochs = false}, .keep = 1});
  CHECK(checkpoints.resume(folder.path()).steps == 9);
  train::TrainObserver observer = waiting_for(checkpoints);
  observer.stop = [&] { return run.trainer->steps_done() == 11; };
  run.trainer->run(checkpoints.with(observer));
  CHECK(checkpoints.finish().empty());
  CHECK(folder.steps() == Steps{11});
}

TEST_CASE("a folder with checkpoints of later steps takes none of a run that did not go on from them") {
  comm::ProcessGroup group(comm::make_self_backend());
  const TemporaryDirectory directory;
  const CheckpointFolder folder(directory / "checkpoints"), other(directory / "other");
  fill(folder, group);
  fill(other, group);
  SmallRun run(group);
  Checkpointing checkpoints(*run.trainer, group, folder);
  std::string error;
  SECTION("one that begins") {
    error = error_of([&] { checkpoints.with({}); });
  }
  SECTION("one that goes on from an earlier one") {
    error = error_of([&] { checkpoints.resume(folder.path_of(6)); });
  }
  SECTION("one that goes on from another folder") {
    error = error_of([&] { checkpoints.resume(other.path_of(9)); });
  }
  CHECK_THAT(error, ContainsText("checkpoints: holds one of step 12, and this run is behind step " +
                                 std::to_string(run.trainer->steps_done()) + ": go on from the newest"));
  CHECK(folder.steps() == Steps{6, 9, 12});
}

TEST_CASE("two runs cannot write to one folder at once") {
  const TemporaryDirectory directory;
  const CheckpointFolder folder(directory / "checkpoints");
  const auto second = [&] { return error_of([&] { const train::CheckpointWriter writer(folder, 1); }); };
  {
    const train::CheckpointWriter writer(folder, 1);
    fs::create_directory(directory / "checkpoints/.tandem-checkpoint-1-0");  // which the first is writing
    CHECK_THAT(second(), ContainsText("checkpoints: another run writes its checkpoints there"));
    CHECK(exit_code_forked([&] { return second() == "no error" ? 0 : 1; }) == 1);
    CHECK(fs::exists(directory / "checkpoints/.tandem-checkpoint-1-0"));
  }
  CHECK(second() == "no error");
  CHECK(folder.steps().empty());
  CHECK(fs::is_empty(folder.path()));
}

TEST_CASE("a state with NaN is not written, and does not push out what was") {
  comm::ProcessGroup group(comm::make_self_backend());
  const TemporaryDirectory directory;
  const CheckpointFolder folder(directory / "checkpoints");
  SmallRun run(group);
  Checkpointing checkpoints(*run.trainer, group, folder, {.every = {.steps = 1}, .keep = 1});
  train::TrainObserver observer = waiting_for(checkpoints);
  observer.epoch = [&](const EpochRecord& epoch) {
    if (epoch.epoch != 2) return;
    checkpoints.write();
    run.model.parameters().front().detach().copy_from(Tensor::full({10, 64}, std::nan("")));
  };
  run.trainer->run(checkpoints.with(observer));
  CHECK_THAT(checkpoints.finish(), ContainsText("step-0000000007: not written: model.1.weight has values that are not "
                                                "numbers (NaN)"));
  CHECK(folder.steps().back() == 6);
  // Infinity may be meant, as in a mask.
  train::CheckpointWriter writer(CheckpointFolder(directory / "masks"), 1);
  writer.write(1, {{{"model.mask", Tensor::full({2}, -std::numeric_limits<double>::infinity())}}, {}});
  writer.finish();
  CHECK(writer.take_problem().empty());
}

TEST_CASE("a state in an epoch whose loss is not finite on some rank is not written") {
  const TemporaryDirectory directory;
  train::CheckpointWriter writer(CheckpointFolder(directory / "checkpoints"), 1);
  const auto problem_with = [&](std::size_t entry) {
    std::vector<double> sums(8, 1.0);  // of two ranks: loss, correct, images, a metric
    sums[entry] = std::numeric_limits<double>::infinity();
    writer.write(1, {{{"trainer.epoch_sums", Tensor::from(sums, {2, 4})}}, {}});
    writer.finish();
    return writer.take_problem();
  };
  for (const std::size_t loss : {0U, 4U})
    CHECK_THAT(problem_with(loss), ContainsText("step-0000000001: not written: the loss is not a finite number"));
  CHECK(problem_with(7).empty());  // a metric may be what it likes
}

TEST_CASE("the best checkpoint stays where a better one could not be written") {
  const TemporaryDirectory directory;
  const CheckpointFolder folder(directory / "checkpoints");
  train::CheckpointWriter writer(folder, 1);
  const auto write = [&](std::int64_t step, double value, bool best) {
    writer.write(step, {{{"model.weight", Tensor::full({2}, value)}}, {}}, best);
    writer.finish();
    return writer.take_problem();
  };
  CHECK(write(1, 1.0, true).empty());
  CHECK(write(2, 1.0, false).empty());
  CHECK(!write(3, std::nan(""), true).empty());
  CHECK(write(4, 1.0, false).empty());
  CHECK(folder.steps() == Steps{1, 4});
}

TEST_CASE("a run that goes on by another figure looks for its best anew") {
  comm::ProcessGroup group(comm::make_self_backend());
  const TemporaryDirectory directory;
  const CheckpointFolder folder(directory / "checkpoints");
  // Losses are larger merits than any accuracy here: as -loss, they are negative.
  fill(folder, group, {.every = {.epochs = true}, .keep = 4, .best_by = train::BestBy::train_loss});
  fs::remove_all(folder.path_of(12));
  SmallRun run(group, 6);
  data::Loader test(run.images, data::LoaderOptions{.global_batch_size = 20});
  train::Trainer trainer(run.model, *run.optimizer, *run.loader, {.test = &test, .group = &group, .epochs = 6});
  Checkpointing checkpoints(trainer, group, folder, {.keep = 1, .best_by = train::BestBy::test_accuracy});
  train::TrainObserver observer;
  observer.epoch = [&](const EpochRecord& epoch) {
    // The first epoch behind is the best: all that come are worse.
    if (epoch.epoch >= 4) run.model.parameters().front().detach().copy_from(Tensor::zeros({10, 64}));
  };
  checkpoints.resume(folder.path());
  trainer.run(checkpoints.with(observer));
  CHECK(checkpoints.finish().empty());
  CHECK(folder.steps().front() == 12);
}

TEST_CASE("what cannot be written is told once, again for another reason, and when writing works again") {
  comm::ProcessGroup group(comm::make_self_backend());
  const TemporaryDirectory directory;
  const CheckpointFolder folder(directory / "checkpoints");
  std::vector<std::string> problems;
  SmallRun run(group, 8);
  Checkpointing checkpoints(*run.trainer, group, folder,
                            {.on_problem = [&](const std::string& problem) { problems.push_back(problem); }});
  train::TrainObserver observer;
  observer.epoch = [&](const EpochRecord& epoch) {
    checkpoints.wait();
    if (epoch.epoch == 2 || epoch.epoch == 7) {  // epochs 2, 3 and 4 fail; so do 7 and 8
      fs::remove_all(folder.path());
      write_bytes(folder.path(), "a file");
    }
    if (epoch.epoch == 5) fs::remove(folder.path());  // 5 and 6 do not
  };
  run.trainer->run(checkpoints.with(observer));
  CHECK_THAT(checkpoints.finish(), ContainsText("Not a directory"));
  REQUIRE(problems.size() == 4);
  CHECK_THAT(problems[0], ContainsText("checkpoints: cannot make this folder for checkpoints: Not a directory"));
  CHECK_THAT(problems[1], ContainsText("checkpoints: was removed while the run wrote there"));
  CHECK_THAT(problems[2], ContainsText("checkpoints: can be written again"));
  CHECK(problems[3] == problems[0]);
}

TEST_CASE("a folder that is removed under way is made again and held, which is said once") {
  comm::ProcessGroup group(comm::make_self_backend());
  const TemporaryDirectory directory;
  const CheckpointFolder folder(directory / "run/checkpoints");
  const bool by_caller = GENERATE(false, true);
  std::vector<std::string> problems;
  SmallRun run(group, 6);
  Checkpointing checkpoints(*run.trainer, group, folder,
                            {.on_problem = [&](const std::string& problem) { problems.push_back(problem); }});
  train::TrainObserver observer;
  observer.epoch = [&](const EpochRecord& epoch) {
    if (epoch.epoch != 4) return;
    checkpoints.wait();
    fs::remove_all(directory / "run");
    if (by_caller) checkpoints.begin_again();
  };
  run.trainer->run(checkpoints.with(observer));
  CHECK(checkpoints.finish().empty());
  CHECK(problems.size() == (by_caller ? 0 : 1));
  if (!problems.empty())
    CHECK_THAT(
        problems[0],
        ContainsText("checkpoints: was removed while the run wrote there; it is made again, and the checkpoints"));
  CHECK(folder.steps() == Steps{12, 15, 18});
  CHECK(folder.newest().passed_over.empty());
  CHECK_THAT(error_of([&] { folder.prepare(); }), ContainsText("another run writes its checkpoints there"));
}

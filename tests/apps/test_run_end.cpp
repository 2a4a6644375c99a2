// What is left of a run that ends by an error.
#include "run_end.h"

#include "command_line.h"
#include "run_directory.h"

#include "tandem/comm/agreement.h"
#include "tandem/comm/backends/backend.h"
#include "tandem/train/environment_file.h"
#include "tandem/train/progress_format.h"
#include "tandem/train/trainer.h"
#include "tests/comm/thread_ranks.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

#include <filesystem>
#include <fstream>
#include <sstream>

using namespace tandem;
using namespace tandem::apps;
using tandem::test::ContainsText;

namespace {

namespace fs = std::filesystem;

void read_settings(OptionTable& table, Settings& settings, const std::string& folder, std::int64_t ranks) {
  describe_options(table, settings);
  std::vector<const char*> arguments{
      "cifar_train", "--dataset",    "synthetic", "--model",    "mnist_cnn",     "--layers", "1",
      "--run-dir",   folder.c_str(), "--epochs",  "3",          "--limit-train", "32",       "--limit-test",
      "16",          "--batch-size", "8",         "--progress", "none"};
  // Ranks that are threads share one timeline.
  if (ranks == 1) arguments.insert(arguments.end(), {"--profile", "steps=1:2"});
  ConfigReader configs;
  parse_command_line(static_cast<int>(arguments.size()), arguments.data(), table, {"batch-size", "global-batch-size"},
                     configs);
  resolve(settings, ranks);
}

/// Trains until `observe`, which is called behind each step, throws; what it threw.
std::string run_until_error(comm::ProcessGroup& group, const std::string& folder,
                            const std::function<void(const train::Trainer&)>& observe) {
  OptionTable table;
  Settings settings;
  read_settings(table, settings, folder, group.size());
  const Data images = load_data(settings);
  settings = with_length(settings, images.train->size(), group.size());
  RunParts parts = make_parts(settings, images, group, {}, [] {});
  train::RunRecord run;
  run.model = "mnist_cnn";
  run.world_size = group.size();
  train::Reporter reporter({.silent = true, .logs = {}, .elapsed = [] { return 0.0; }});
  std::string differences;
  train::Checkpointing checkpoints(*parts.trainer, group, checkpoint_folder(settings),
                                   checkpointing_options(settings, table, *images.train, differences));
  RunFiles files(settings, run, {"cifar_train"}, group, *parts.trainer, *parts.model);
  ProfiledSteps profiled(settings, *parts.trainer, *parts.model, *parts.optimizer, group, {});
  ClaimedDirectory claimed;  // none
  RunDirectoryWatch watch(claimed, {});
  train::TrainObserver observer = checkpoints.with(files.with(profiled.with({})));
  observer.progress = [&, inner = observer.progress](const train::Progress& progress) {
    inner(progress);
    observe(*parts.trainer);
  };
  try {
    train_to_the_end({settings, images, parts, group, {}, checkpoints, files, profiled, watch, reporter, nullptr},
                     observer);
  } catch (const std::exception& error) {
    return error.what();
  }
  return "nothing";
}

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  return (std::stringstream() << file.rdbuf()).str();
}

}  // namespace

TEST_CASE("a run that an error ends keeps its profile, its events and how it ended", "[threads]") {
  const int ranks = GENERATE(1, 2);
  CAPTURE(ranks);
  const test::TemporaryDirectory folder;
  fs::create_directories(folder / "run");
  std::vector<std::string> thrown(static_cast<std::size_t>(ranks));
  test::run_thread_ranks(ranks, [&](comm::ProcessGroup& group) {
    thrown[static_cast<std::size_t>(group.rank())] =
        run_until_error(group, folder / "run", [&](const train::Trainer& trainer) {
          comm::run_agreed(group, [&] {
            require(group.rank() + 1 < ranks || trainer.steps_done() < 7 / ranks, "the machine is on fire");
          });
        });
  });
  for (const std::string& text : thrown) CHECK_THAT(text, ContainsText("the machine is on fire"));
  const auto status = train::read_run_status(folder / "run/environment.json");
  REQUIRE(status);
  CHECK(status->state == train::RunState::failed);
  CHECK_THAT(text_of(folder / "run/environment.json"), ContainsText("\"exit_code\": 2"));
  if (ranks == 1) {
    CHECK_THAT(text_of(folder / "run/trace.json"), ContainsText("step 2"));
    CHECK(fs::exists(folder / "run/profile.txt"));
    CHECK_THAT(text_of(folder / "run/trace.html"), ContainsText("on 1 rank"));
  }
  CHECK(fs::exists(folder / "run/evaluation.json"));  // of the epochs that were complete
  CHECK_FALSE(fs::exists(folder / "run/final.safetensors"));
}

TEST_CASE("an error that is not of all ranks alike is ended without them", "[threads]") {
  const test::TemporaryDirectory folder;
  fs::create_directories(folder / "run");
  test::run_thread_ranks(2, [&](comm::ProcessGroup& group) {
    const std::string thrown = run_until_error(group, folder / "run", [](const train::Trainer& trainer) {
      if (trainer.steps_done() == 3) throw std::runtime_error("out of luck");
    });
    require(thrown == "out of luck", "{}", thrown);
  });
  CHECK(train::read_run_status(folder / "run/environment.json")->state == train::RunState::failed);
  CHECK_THAT(text_of(folder / "run/environment.json"), ContainsText("\"exit_code\": 1"));
  CHECK_FALSE(fs::exists(folder / "run/evaluation.json"));  // for which ranks would have to be there
}

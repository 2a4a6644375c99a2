// What environment.json tells, and how a run ended.
#include "tandem/train/environment_file.h"

#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

#include "tandem/train/process_info.h"

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

using namespace tandem;
using namespace tandem::train;
using Json = nlohmann::json;

namespace {

Json read(const std::string& path) {
  std::ifstream file(path);
  return Json::parse(file);
}

RunRecord some_run() {
  RunRecord run;
  run.versions = build_versions();
  run.host = "here";
  run.started = "2026-01-31T12:00:00Z";
  run.model = "resnet9";
  run.dataset = "cifar10";
  run.network = "alpha=2ms";
  return run;
}

RunEnvironment some_environment() {
  return {.command = {"train", "--data", "no \xff utf-8"},
          .folder = "/work",
          .launcher = "srun",
          .places = {"a, cpu", "b, cpu"},
          .git = {}};
}

}  // namespace

TEST_CASE("environment.json tells a run's state from its beginning to its end") {
  const test::TemporaryDirectory folder;
  const std::string path = folder / "environment.json";
  CHECK(!read_run_status(path));
  {
    EnvironmentFile file(path, some_run(), some_environment());
    CHECK(read_run_status(path) == RunStatus{RunState::running, "resnet9", "cifar10"});
    CHECK(!read(path).contains("ended"));
    file.end(RunState::stopped, 143);
  }
  const Json json = read(path);
  CHECK(read_run_status(path)->state == RunState::stopped);
  CHECK(json["exit_code"] == 143);
  CHECK(json["started"] == "2026-01-31T12:00:00Z");
  CHECK(json["ended"].get<std::string>().size() == 20);
  CHECK(json["command"] == Json{"train", "--data", "no \xef\xbf\xbd utf-8"});
  CHECK(json["ranks"] == Json{"a, cpu", "b, cpu"});
  CHECK(json["simulated_network"] == "alpha=2ms");
  CHECK(json["launcher"] == "srun");
  CHECK(json["model"] == "resnet9");
  CHECK(json["versions"]["tandem"] == build_versions().front().second);
  CHECK(json["devices"][0]["device"] == "cpu");
  CHECK(!json.contains("git"));
  CHECK(folder.entries() == 1);
}

TEST_CASE("a run that is left by an exception has failed") {
  const test::TemporaryDirectory folder;
  const std::string path = folder / "environment.json";
  {
    const EnvironmentFile file(path, some_run(), some_environment());
  }
  CHECK(read_run_status(path)->state == RunState::failed);
  CHECK(!read(path).contains("exit_code"));
}

TEST_CASE("the state in a damaged file is none") {
  const test::TemporaryDirectory folder;
  for (const char* text : {"", "{", "[]", R"({"state":7})", R"({"state":"asleep"})"}) {
    test::write_bytes(folder / "environment.json", text);
    CHECK(!read_run_status(folder / "environment.json"));
  }
}

TEST_CASE("a checkout's commit, and whether files differ from it") {
  const test::TemporaryDirectory folder;
  const std::string root = folder.path().string();
  CHECK(!git_state(root));
  CHECK(!git_state(root + "/missing"));
  const auto git = [&](const std::string& words) {
    const std::string command =
        "git -C '" + root + "' -c user.name=a -c user.email=a@b.c " + words + " >/dev/null 2>&1";
    return std::system(command.c_str()) == 0;
  };
  if (!git("init -q")) return;  // no git here
  REQUIRE(git_state(root));
  CHECK(git_state(root)->commit.empty());
  test::write_bytes(folder / "file", "one");
  REQUIRE((git("add file") && git("commit -q -m one")));
  REQUIRE(git_state(root));
  CHECK(git_state(root)->commit.size() == 40);
  CHECK(!git_state(root)->is_dirty);
  test::write_bytes(folder / "other", "untracked");
  CHECK(!git_state(root)->is_dirty);
  test::write_bytes(folder / "file", "two");
  CHECK(git_state(root)->is_dirty);
}

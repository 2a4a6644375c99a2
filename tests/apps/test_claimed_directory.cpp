// Run directories of one's own, and which one a run goes on in.
#include "claimed_directory.h"

#include "tests/support/catch.h"
#include "tests/support/error_of.h"
#include "tests/support/temporary_directory.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <thread>

using namespace tandem;
using namespace tandem::apps;
using tandem::test::ContainsText;

namespace {

namespace fs = std::filesystem;

void make_run(const fs::path& folder, const std::string& state, bool has_checkpoint = true,
              const std::string& dataset = "mnist") {
  fs::create_directories(folder / "checkpoints");
  if (has_checkpoint) fs::create_directories(folder / "checkpoints/step-0000000010");
  test::write_bytes((folder / "environment.json").string(),
                    "{\"state\":\"" + state + "\",\"dataset\":\"" + dataset + "\"}");
}

}  // namespace

TEST_CASE("run directories are numbered, and gone where nothing came into them") {
  const test::TemporaryDirectory folder;
  const std::string runs = folder / "runs";
  const ClaimedDirectory first = make_run_directory(runs, "small_cnn");
  {
    const ClaimedDirectory second = make_run_directory(runs, "small_cnn");
    CHECK(first.path().ends_with("-small_cnn-1"));
    CHECK(second.path().ends_with("-small_cnn-2"));
    CHECK(make_run_directory(runs, "resnet9").path().ends_with("-resnet9-1"));
    CHECK(fs::path(first.path()).filename().string().size() == std::string("2026-01-31-small_cnn-1").size());
    CHECK(fs::is_directory(second.path()));
    test::write_bytes(first.path() + "/file", "");
  }
  CHECK(!fs::exists(fs::path(runs) / fs::path(first.path()).filename().string().replace(21, 1, "2")));
  CHECK(fs::exists(first.path() + "/file"));
}

TEST_CASE("what was made for a run directory is gone where nothing came into it, and nothing else") {
  const test::TemporaryDirectory folder;
  const std::string runs = folder / "runs";
  make_run_directory(runs, "cnn");
  CHECK_FALSE(fs::exists(runs));
  {
    const ClaimedDirectory first = make_run_directory(runs, "cnn");
    ClaimedDirectory second = make_run_directory(runs, "cnn");
    test::write_bytes(second.path() + "/file", "");
  }
  CHECK(fs::exists(runs));
  CHECK_THAT(test::error_of([&] { make_run_directory(runs + "2", "no/model"); }),
             ContainsText("cannot make this folder for the run: No such file or directory"));
  CHECK_FALSE(fs::exists(runs + "2"));
  fs::create_directory(folder / "mine");
  make_run_directory(folder / "mine", "cnn");
  CHECK(fs::exists(folder / "mine"));
}

TEST_CASE("runs that begin and give up at once do not take each other's directories") {
  const test::TemporaryDirectory folder;
  std::vector<std::string> errors(8);
  {
    std::vector<std::thread> threads;
    for (std::string& error : errors)
      threads.emplace_back([&] {
        error = test::error_of([&] {
          for (int i = 0; i < 200; ++i) make_run_directory(folder / "runs", "m");
        });
      });
    for (std::thread& thread : threads) thread.join();
  }
  for (const std::string& error : errors) CHECK(error == "no error");
}

TEST_CASE("runs that begin at once get directories of their own") {
  const test::TemporaryDirectory folder;
  std::vector<ClaimedDirectory> claimed(16);
  {
    std::vector<std::thread> threads;
    for (auto& one : claimed) threads.emplace_back([&] { one = make_run_directory(folder / "runs", "m"); });
    for (std::thread& thread : threads) thread.join();
  }
  std::set<std::string> paths;
  for (const auto& one : claimed) paths.insert(one.path());
  CHECK(paths.size() == 16);
}

TEST_CASE("where no run directory can be made, the error tells how to do without") {
  const test::TemporaryDirectory folder;
  test::write_bytes(folder / "runs", "a file");
  CHECK_THAT(
      test::error_of([&] { make_run_directory(folder / "runs", "m"); }),
      ContainsText("cannot make this folder for the run: Not a directory; name another one by --run-dir, or give "
                   "--no-run-dir to keep nothing"));
}

TEST_CASE("a run goes on in the newest directory of its model that has not come to its end") {
  const test::TemporaryDirectory folder;
  const fs::path runs = folder.path() / "runs";
  CHECK(unfinished_run_directory(runs.string(), "cnn", "mnist").path().empty());
  make_run(runs / "2026-01-31-cnn-9", "running");
  make_run(runs / "2026-02-01-cnn-2", "stopped");
  make_run(runs / "2026-02-01-cnn-10", "failed");
  make_run(runs / "2026-02-01-cnn-11", "finished");
  make_run(runs / "2026-02-01-cnn-12", "running", {});  // no checkpoint
  make_run(runs / "2026-02-01-cnn-13", "running", true, "cifar10");
  make_run(runs / "2026-02-02-resnet9-1", "running");
  make_run(runs / "2026-02-03-cnn-x", "running");
  fs::create_directories(runs / "2026-02-04-cnn-1");
  const auto newest = [&] { return unfinished_run_directory(runs.string(), "cnn", "mnist"); };
  const ClaimedDirectory first = newest();
  CHECK(fs::path(first.path()).filename() == "2026-02-01-cnn-10");
  const ClaimedDirectory second = newest();  // while the first one is held
  CHECK(fs::path(second.path()).filename() == "2026-02-01-cnn-2");
  CHECK_THAT(test::error_of([&] { const ClaimedDirectory again(first.path(), {}); }),
             ContainsText(first.path() + ": another run is writing there"));
  CHECK(fs::exists(first.path()));
}

TEST_CASE("a claimed directory is cleared of what killed processes left of files") {
  const test::TemporaryDirectory folder;
  test::write_bytes(folder / ".tandem-4194300-0.tmp", "half a config.toml");
  test::write_bytes(folder / "config.toml", "");
  {
    const ClaimedDirectory held(folder.path().string(), {});
    CHECK(folder.entries() == 1);
    test::write_bytes(folder / ".tandem-4194300-0.tmp", "");
    CHECK_THAT(test::error_of([&] { const ClaimedDirectory again(folder.path().string(), {}); }),
               ContainsText("another run is writing there"));
    CHECK(folder.entries() == 2);  // it is the other run's to clear
  }
}

TEST_CASE("a claimed directory that is removed or moved is made again, and held again") {
  const test::TemporaryDirectory folder;
  const std::string path = folder / "runs/1";
  fs::create_directories(path);
  ClaimedDirectory held(path, {});
  CHECK_FALSE(held.make_again());
  fs::remove_all(folder / "runs");
  CHECK(held.make_again());
  CHECK(fs::is_directory(path));
  CHECK_FALSE(held.make_again());
  CHECK_THAT(test::error_of([&] { const ClaimedDirectory again(path, {}); }), ContainsText("another run is writing"));
  fs::rename(path, folder / "moved");
  CHECK(held.make_again());
  CHECK(fs::is_directory(path));
  // Another run has made it.
  fs::remove(path);
  fs::create_directory(path);
  const ClaimedDirectory other(path, {});
  CHECK_THAT(test::error_of([&] { held.make_again(); }), ContainsText(path + ": another run is writing there"));
  CHECK_FALSE(ClaimedDirectory().make_again());
}

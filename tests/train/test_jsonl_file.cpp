// When records of the JSONL log come into the file, and what happens when they cannot.
#include "tandem/core/error.h"
#include "tandem/train/jsonl_log.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"
#include "tests/train/jsonl_support.h"

#include <sys/resource.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

using namespace tandem::train;
using tandem::test::Json;
using tandem::test::some_epoch;
using tandem::test::TemporaryFile;

TEST_CASE("a new log goes on after the old one") {
  TemporaryFile file;
  JsonlLog(file.path).write(StepRecord{1, 1, 0.1, 1.0});
  JsonlLog(file.path).write(StepRecord{2, 1, 0.1, 1.0});
  const auto records = file.records();
  REQUIRE(records.size() == 2);
  CHECK(records[0]["step"] == 1);
  CHECK(records[1]["step"] == 2);
}

TEST_CASE("a log that ends inside a line is gone on with on the next one") {
  TemporaryFile file;
  std::ofstream(file.path) << R"({"record":"step","st)";
  JsonlLog log(file.path);
  log.write(StepRecord{1, 1, 0.1, 1.0});
  log.write(StepRecord{2, 1, 0.1, 1.0});
  log.flush();
  std::ifstream lines(file.path);
  std::string first, second, third;
  std::getline(lines, first);
  std::getline(lines, second);
  std::getline(lines, third);
  CHECK(first == R"({"record":"step","st)");
  CHECK(Json::parse(second)["step"] == 1);
  CHECK(Json::parse(third)["step"] == 2);
}

TEST_CASE("what is no log is not written to") {
  TemporaryFile file;
  std::ofstream(file.path) << "{\"a\": 1}\n";
  CHECK_THROWS_WITH(JsonlLog(file.path), tandem::test::ContainsText("holds something else than the log of a run"));
  std::ifstream line(file.path);
  std::string text;
  std::getline(line, text);
  CHECK(text == "{\"a\": 1}");
}

TEST_CASE("a record that a full disk cuts is taken back, and later ones follow") {
  struct Limit {
    rlimit before{};
    void (*handler)(int) = std::signal(SIGXFSZ, SIG_IGN);
    explicit Limit(rlim_t bytes) {
      getrlimit(RLIMIT_FSIZE, &before);
      const rlimit lower{bytes, before.rlim_max};
      setrlimit(RLIMIT_FSIZE, &lower);
    }
    ~Limit() {
      setrlimit(RLIMIT_FSIZE, &before);
      std::signal(SIGXFSZ, handler);
    }
  };
  TemporaryFile file;
  JsonlLog log(file.path);
  log.write(StepRecord{1, 1, 0.1, 1.0});
  {
    const Limit limit(std::filesystem::file_size(file.path) + 20);
    log.write(StepRecord{2, 1, 0.1, 1.0});
    CHECK_THROWS_WITH(log.flush(), tandem::test::ContainsText("writing failed: File too large"));
    CHECK(file.records().size() == 1);
  }
  CHECK(log.lost_records() == 1);
  log.write(StepRecord{3, 1, 0.1, 1.0});
  log.flush();
  CHECK(log.lost_records() == 1);
  {  // of several at once, those stay that there is room for
    const auto line = (std::filesystem::file_size(file.path) + 1) / 2;
    const Limit limit(std::filesystem::file_size(file.path) + 2 * line + line / 2);
    const auto write_four = [&] {
      for (const std::int64_t step : {4, 5, 6, 7}) log.write(StepRecord{step, 1, 0.1, 1.0});
      log.flush();
    };
    CHECK_THROWS_WITH(write_four(), tandem::test::ContainsText("writing failed: File too large"));
  }
  CHECK(log.lost_records() > 1);  // step 2, 6, and 7 where it came with 6
  log.write(StepRecord{8, 1, 0.1, 1.0});
  log.flush();
  const auto records = file.records();
  std::vector<std::int64_t> steps;
  for (const auto& record : records) steps.push_back(record["step"]);
  CHECK(steps == std::vector<std::int64_t>{1, 3, 4, 5, 8});
}

TEST_CASE("a log that cannot be written says which file and why") {
  CHECK_THROWS_WITH(JsonlLog("/nonexistent/run.jsonl"),
                    tandem::test::ContainsText("/nonexistent/run.jsonl") && tandem::test::ContainsText("No such file"));
  CHECK_THROWS_WITH(JsonlLog("/"), tandem::test::ContainsText("directory"));
  if (std::filesystem::exists("/dev/full")) {
    JsonlLog log("/dev/full");
    CHECK_THROWS_WITH(log.write(some_epoch()), tandem::test::ContainsText("No space left"));
  }
}

TEST_CASE("a log whose folder is removed begins again with the run's record") {
  const tandem::test::TemporaryDirectory directory;
  const std::string path = directory / "run/log.jsonl";
  std::filesystem::create_directory(directory / "run");
  const auto kinds = [&] {
    std::string text;
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) text += Json::parse(line)["record"].get<std::string>() + " ";
    return text;
  };
  JsonlLog log(path);
  log.write(RunRecord{});
  log.write(StepRecord{1, 1, 0.1, 1.0});
  log.flush();
  CHECK_FALSE(log.take_removed());
  std::filesystem::remove_all(directory / "run");
  log.write(StepRecord{2, 1, 0.1, 1.0});
  log.flush();
  CHECK(kinds() == "run step ");
  CHECK(log.take_removed());
  CHECK_FALSE(log.take_removed());
  // Another file in its place, such as log rotation puts there.
  std::filesystem::rename(path, path + ".1");
  tandem::test::write_bytes(path, "");
  log.write(StepRecord{3, 1, 0.1, 1.0});
  log.flush();
  CHECK(kinds() == "run step ");
  CHECK(log.take_removed());
  // The caller has noticed: nothing is left to tell.
  std::filesystem::remove_all(directory / "run");
  log.begin_again();
  log.begin_again();
  CHECK(kinds() == "run ");
  log.write(some_epoch());
  CHECK(kinds() == "run epoch ");
  CHECK_FALSE(log.take_removed());
}

TEST_CASE("short steps are written together, behind 50 ms or before what comes next") {
  TemporaryFile file;
  const auto wait = [] { std::this_thread::sleep_for(std::chrono::milliseconds(60)); };
  {
    JsonlLog log(file.path);
    log.write(StepRecord{1, 1, 0.1, 1.0});
    CHECK(file.records().size() == 1);  // nothing was written for long
    const auto first = std::chrono::steady_clock::now();
    std::int64_t step = 1;
    while (step < 4) log.write(StepRecord{++step, 1, 0.1, 1.0});
    if (std::chrono::steady_clock::now() - first < std::chrono::milliseconds(40)) CHECK(file.records().size() == 1);
    wait();
    log.write(StepRecord{++step, 1, 0.1, 1.0});
    CHECK(file.records().size() == 5);
    log.write(StepRecord{++step, 1, 0.1, 1.0});
    log.write(some_epoch());
    CHECK(file.records().size() == 7);
    log.write(StepRecord{++step, 1, 0.1, 1.0});
    log.flush();
    CHECK(file.records().size() == 8);
    log.write(StepRecord{++step, 1, 0.1, 1.0});
  }
  const auto records = file.records();
  REQUIRE(records.size() == 9);
  CHECK(records[5]["step"] == 6);
  CHECK(records[6]["record"] == "epoch");
  CHECK(records[8]["step"] == 8);
}

TEST_CASE("a log that cannot begin again says so, and tries with each record") {
  const tandem::test::TemporaryDirectory directory;
  std::filesystem::create_directory(directory / "run");
  JsonlLog log(directory / "run/log.jsonl");
  log.write(RunRecord{});
  std::filesystem::remove_all(directory / "run");
  tandem::test::write_bytes(directory / "run", "a file");
  for (int i = 0; i < 2; ++i)
    CHECK_THROWS_WITH(log.write(some_epoch()),
                      tandem::test::ContainsText("its folder was removed, and cannot be made"));
  log.write(StepRecord{1, 1, 0.1, 1.0});
  log.write(StepRecord{2, 1, 0.1, 1.0});
  CHECK_THROWS_AS(log.flush(), tandem::Error);
  CHECK(log.lost_records() == 4);
  std::filesystem::remove(directory / "run");
  log.write(some_epoch());
  CHECK(log.take_removed());
  CHECK(std::filesystem::file_size(directory / "run/log.jsonl") > 0);
}

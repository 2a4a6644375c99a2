// The records of the JSONL log, field by field, and what happens when they cannot be written.
#include "tandem/train/jsonl_log.h"

#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

#include "tandem/comm/ddp/exchange_totals.h"
#include "tandem/core/error.h"
#include "tandem/core/tensor.h"
#include "tandem/train/process_info.h"

#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

using namespace tandem::train;
using Json = nlohmann::ordered_json;

namespace {

struct TemporaryFile {
  std::string path =
      (std::filesystem::temp_directory_path() / ("tandem_log_" + std::to_string(getpid()) + ".jsonl")).string();
  ~TemporaryFile() { std::filesystem::remove(path); }

  std::vector<Json> records() const {
    std::vector<Json> records;
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) records.push_back(Json::parse(line));
    return records;
  }
};

std::vector<std::string> keys(const Json& json) {
  std::vector<std::string> names;
  for (const auto& item : json.items()) names.push_back(item.key());
  return names;
}

EpochRecord some_epoch() {
  EpochRecord r;
  r.epoch = 2;
  r.lr = 0.05;
  r.train_loss = 1.25;
  r.train_accuracy = 55.5;
  r.test_loss = 1.0;
  r.test_accuracy = 60.25;
  r.seconds = 12.5;
  r.images_per_second = 4000;
  r.world_size = 2;
  r.backend = "native";
  r.peak_memory_bytes = 123456789;
  r.loss_scale = 4096.0;
  r.skipped_steps = 3;
  return r;
}

}  // namespace

TEST_CASE("each record has its fields, and stands in the file") {
  TemporaryFile file;
  JsonlLog log(file.path);
  RunRecord run;
  run.config = {{"lr", 0.1}, {"epochs", std::int64_t{8}}, {"model", std::string("small_cnn")}, {"batch-norm", false}};
  run.versions = build_versions();
  run.host = host_name();
  run.started = utc_time();
  run.backend = "native";
  run.world_size = 2;
  run.threads = 1;
  run.model = "small_cnn";
  run.model_parameters = 241482;
  run.network = "alpha=2ms";
  run.without_effect = {"log", "keep"};
  log.write(run);
  auto records = file.records();
  REQUIRE(records.size() == 1);
  CHECK(records[0]["record"] == "run");
  for (const char* name : {"config", "versions", "host", "ranks", "threads", "model_parameters", "backend",
                           "comm_progress", "world_size"}) {
    CHECK(records[0].contains(name));
  }
  CHECK(records[0]["ranks"] == 2);
  CHECK(records[0]["network"] == "alpha=2ms");
  CHECK(records[0]["config"] == Json({{"lr", 0.1}, {"epochs", 8}, {"model", "small_cnn"}, {"batch-norm", false}}));
  CHECK(records[0]["versions"]["tandem"].is_string());
  CHECK(records[0]["without_effect"] == Json({"log", "keep"}));

  const std::vector<std::string> fields{"record",        "epoch",          "lr",
                                        "train_loss",    "train_accuracy", "test_loss",
                                        "test_accuracy", "seconds",        "images_per_second",
                                        "world_size",    "backend",        "peak_memory_bytes",
                                        "loss_scale",    "skipped_steps"};
  log.write(some_epoch());
  records = file.records();
  REQUIRE(records.size() == 2);
  CHECK(keys(records[1]) == fields);
  CHECK(records[1]["record"] == "epoch");
  CHECK(records[1]["epoch"] == 2);
  CHECK(records[1]["test_accuracy"] == 60.25);
  CHECK(records[1]["peak_memory_bytes"] == 123456789);
  CHECK(records[1]["loss_scale"] == 4096.0);
  CHECK(records[1]["skipped_steps"] == 3);

  log.write(StepRecord{7, 1, 0.05, 2.25, 1024.0, 2});
  log.flush();
  CHECK(file.records()[2] == Json({{"record", "step"},
                                   {"step", 7},
                                   {"epoch", 1},
                                   {"lr", 0.05},
                                   {"loss", 2.25},
                                   {"loss_scale", 1024.0},
                                   {"skipped_steps", 2}}));

  log.write(ResultRecord{some_epoch(), 99.5, {{"activations", 4096}, {"optimizer", 1024}}});
  records = file.records();
  REQUIRE(records.size() == 4);
  auto result_fields = fields;
  result_fields.emplace_back("total_seconds");
  result_fields.emplace_back("peak_tensor_bytes");
  CHECK(keys(records[3]) == result_fields);
  CHECK(records[3]["record"] == "result");
  CHECK(records[3]["total_seconds"] == 99.5);
  CHECK(records[3]["peak_tensor_bytes"] == Json({{"activations", 4096}, {"optimizer", 1024}}));
}

TEST_CASE("what an epoch took is in its record") {
  TemporaryFile file;
  JsonlLog log(file.path);
  EpochRecord epoch = some_epoch();
  epoch.time = PhaseTimes{.data = 0.5, .backward = 2.0};
  epoch.memory = {{"data", 4096}};
  epoch.exchange = tandem::comm::ExchangeTotals{
      .steps = 3, .bytes = 300, .early_bytes = 200, .seconds = 0.5, .waited_seconds = 0.25};
  epoch.layers = {{"conv1", 1.0, 2.0, 4.0}};
  epoch.dead_relus = {{"conv1", 8, 3}};
  log.write(epoch);
  const Json record = file.records()[0];
  CHECK(record["time"] == Json({{"data", 0.5},
                                {"forward", 0.0},
                                {"backward", 2.0},
                                {"communication", 0.0},
                                {"optimizer", 0.0},
                                {"evaluation", 0.0},
                                {"writing", 0.0}}));
  CHECK(record["memory"] == Json({{"data", 4096}}));
  CHECK(record["exchange"] ==
        Json({{"steps", 3}, {"bytes", 300}, {"early_bytes", 200}, {"seconds", 0.5}, {"waited_seconds", 0.25}}));
  CHECK(record["layers"][0]["update_norm"] == 2.0);
  CHECK(record["relus"] == Json::parse(R"([{"name": "conv1", "channels": 8, "dead": 3}])"));
}

TEST_CASE("a record of a run that diverged tells where") {
  TemporaryFile file;
  JsonlLog log(file.path);
  EpochRecord epoch = some_epoch();
  epoch.diverged = Divergence{.step = 41, .skipped_steps = 40};
  log.write(epoch);
  CHECK(file.records()[0]["diverged"] == Json({{"step", 41}, {"skipped_steps", 40}}));
}

TEST_CASE("figures that were not evaluated are left out, and a result tells the best epoch") {
  TemporaryFile file;
  JsonlLog log(file.path);
  EpochRecord epoch = some_epoch();
  epoch.test_loss = epoch.test_accuracy = std::nan("");
  epoch.validation_loss = 0.5;
  epoch.validation_accuracy = 70.5;
  epoch.validation_metrics = {{"error", 0.25}};
  epoch.best = {{"validation_accuracy", 1, 71.0}};
  log.write(epoch);
  epoch.test_accuracy = 60.0;  // of a loss that is no number any more
  epoch.stopped_early = true;
  log.write(ResultRecord{epoch, 1.0});
  const auto records = file.records();
  CHECK_FALSE(records[0].contains("test_loss"));
  CHECK_FALSE(records[0].contains("test_accuracy"));
  CHECK(records[0]["validation_loss"] == 0.5);
  CHECK(records[0]["validation_accuracy"] == 70.5);
  CHECK(records[0]["validation_metrics"] == Json({{"error", 0.25}}));
  CHECK_FALSE(records[0].contains("best"));
  CHECK(records[1]["test_loss"].is_null());
  CHECK(records[1]["test_accuracy"] == 60.0);
  CHECK(records[1]["best"] == Json({{"by", "validation_accuracy"}, {"epoch", 1}, {"value", 71.0}}));
  CHECK(records[1]["stopped_early"] == true);
}

TEST_CASE("metrics of a program's own are in the record of their epoch") {
  TemporaryFile file;
  JsonlLog log(file.path);
  EpochRecord epoch = some_epoch();
  epoch.train_metrics = {{"error", 0.5}, {"rank", 2}};
  epoch.test_metrics = {{"error", 0.25}};
  log.write(epoch);
  CHECK(file.records()[0]["train_metrics"] == Json({{"error", 0.5}, {"rank", 2.0}}));
  CHECK(file.records()[0]["test_metrics"] == Json({{"error", 0.25}}));
}

TEST_CASE("what JSON cannot hold becomes null, what is no UTF-8 is replaced") {
  TemporaryFile file;
  JsonlLog log(file.path);
  EpochRecord epoch = some_epoch();
  epoch.train_loss = std::nan("");
  log.write(epoch);
  RunRecord run;
  run.config = {{"data", std::string("/tmp/\xff\"x")}};
  log.write(run);
  CHECK(file.records()[0]["train_loss"].is_null());
  CHECK(file.records()[1]["config"]["data"].is_string());
}

TEST_CASE("the result of a run that only tested has no figures of training") {
  TemporaryFile file;
  EpochRecord tested = some_epoch();
  tested.train_loss = tested.train_accuracy = std::nan("");
  tested.trained = false;
  JsonlLog(file.path).write(ResultRecord{tested, 1.0, {}});
  const auto record = file.records().at(0);
  for (const char* const name : {"train_loss", "train_accuracy", "images_per_second"}) CHECK(!record.contains(name));
  for (const auto& [name, value] : record.items()) {
    INFO(name);
    CHECK(!value.is_null());
  }
}

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

TEST_CASE("facts about this process") {
  CHECK(peak_memory_bytes() > 1 << 20);
  // A library's memory, as clang leaves out a local vector that nobody reads.
  const auto block = tandem::Tensor::full({64 << 20}, 1, {.dtype = tandem::DType::u8});
  CHECK(peak_memory_bytes() > block.numel());
  CHECK_FALSE(host_name().empty());
  CHECK(utc_time().size() == 20);
}

TEST_CASE("settings as TOML") {
  CHECK(to_toml(ConfigValue(true)) == "true");
  CHECK(to_toml(ConfigValue(std::int64_t{-3})) == "-3");
  CHECK(to_toml(ConfigValue(0.1)) == "0.1");
  CHECK(to_toml(ConfigValue(25.0)) == "25.0");
  CHECK(to_toml(ConfigValue(1e-20)) == "1e-20");
  CHECK(to_toml(ConfigValue(std::string("a \"b\" \\ c#"))) == R"("a \"b\" \\ c#")");
  CHECK(to_toml(Config{{"lr", 0.5}, {"seed", std::int64_t{1}}}) == "lr = 0.5\nseed = 1\n");
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

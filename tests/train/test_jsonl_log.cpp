// The records of the JSONL log, field by field.
#include "tandem/train/jsonl_log.h"

#include "tandem/comm/ddp/exchange_totals.h"
#include "tandem/core/tensor.h"
#include "tandem/train/process_info.h"
#include "tests/support/catch.h"
#include "tests/train/jsonl_support.h"

#include <cmath>

using namespace tandem::train;
using tandem::test::Json;
using tandem::test::some_epoch;
using tandem::test::TemporaryFile;

namespace {

std::vector<std::string> keys(const Json& json) {
  std::vector<std::string> names;
  for (const auto& item : json.items()) names.push_back(item.key());
  return names;
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

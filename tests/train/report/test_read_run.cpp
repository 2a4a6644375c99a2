// What is read of a run directory, and what is made of damaged ones.
#include "tandem/train/report/run_data.h"
#include "tandem/train/report/verdict.h"

#include "tests/support/catch.h"
#include "tests/train/report/run_files.h"

#include "tandem/core/error.h"
#include "tandem/layers/safetensors.h"

#include <cmath>

using namespace tandem::train::report;
using tandem::test::ContainsText;
using tandem::test::evaluation_json;
using tandem::test::RunFiles;
using tandem::test::TemporaryDirectory;
using tandem::test::write_bytes;

namespace {

RunFiles three_epochs() {
  return RunFiles("cifar10", 3).epoch(1, 2.0, 30, 1.8, 35).epoch(2, 1.5, 45, 1.4, 50).epoch(3, 1.0, 60, 1.1, 62);
}

}  // namespace

TEST_CASE("report: reads a run") {
  const TemporaryDirectory folder;
  three_epochs().add(R"({"record":"step","step":5,"epoch":1,"lr":0.1,"loss":2.1})").result(3).write(folder);
  write_bytes(folder / "environment.json", R"({"host":{"name":"h","cores":2},"command_line":["a b","it's","--x=1"]})");
  write_bytes(folder / "evaluation.json", evaluation_json("cat", "dog"));
  const RunData run = read_run(folder.path().string());
  CHECK(run.state == RunState::finished);
  CHECK(run.problems.empty());
  CHECK((run.model == "small_cnn" && run.ranks == 2.0 && run.planned_epochs == 3.0 && run.sessions == 1));
  REQUIRE(run.epochs.size() == 3);
  CHECK((run.epochs[2].test_accuracy == 62.0 && std::isnan(run.epochs[2].validation_loss)));
  CHECK(run.epochs[0].time.size() == 4);
  CHECK(run.steps.size() == 1);
  CHECK(run.command_line == R"('a b' 'it'\''s' --x=1)");
  CHECK(run.environment == TextTable{{"host name", "h"}, {"host cores", "2"}});
  REQUIRE(run.evaluation);
  CHECK((run.evaluation->confusion[1][0] == 6 && run.evaluation->worst[0].predicted == "dog"));
  CHECK(setting(run, "seed") == "1");
}

TEST_CASE("report: of an epoch that was done twice, the later counts, and what a killed session did beyond is gone") {
  const TemporaryDirectory folder;
  RunFiles files = three_epochs();
  files.add(R"({"record":"step","step":29,"epoch":3,"loss":1.0})").add(R"({"record":"step","step":30,"loss":1.1})");
  files.add(RunFiles("cifar10", 5).text()).epoch(2, 1.25, 46, 1.45, 51);
  files.add(R"({"record":"step","step":21,"loss":1.2})").write(folder);
  const RunData run = read_run(folder.path().string());
  CHECK((run.sessions == 2 && run.state == RunState::unfinished && run.planned_epochs == 5.0));
  REQUIRE(run.epochs.size() == 2);
  CHECK(run.epochs[1].train_loss == 1.25);
  CHECK((run.steps.size() == 1 && run.steps[0].step == 21.0));
}

TEST_CASE("report: a session that begins at step 0 does not go on with the one before") {
  const TemporaryDirectory folder;
  const auto session = [](int steps_done) {
    return fmt::format(R"({{"record":"run","started":"2026-01-3{}T12:00:00Z","model":"m","steps_done":{}}})",
                       steps_done, steps_done);
  };
  RunFiles files = three_epochs();
  files.add(session(0)).write(folder);
  const RunData anew = read_run(folder.path().string());
  CHECK((anew.sessions == 1 && anew.epochs.empty() && anew.state == RunState::not_begun));
  CHECK(anew.started == "2026-01-30T12:00:00Z");
  files.epoch(1, 1.9, 31, 1.7, 36).add(session(1)).write(folder);
  const RunData on = read_run(folder.path().string());
  CHECK((on.sessions == 2 && on.epochs.size() == 1 && on.started == "2026-01-30T12:00:00Z"));
}

TEST_CASE("report: a run that was gone on with at its end stays what it was") {
  const TemporaryDirectory folder;
  RunFiles files = three_epochs();
  files.add(R"({"record":"result","epoch":3,"total_seconds":9,"peak_tensor_bytes":{"data":4096,"gradients":64}})");
  files.write(folder);
  CHECK(seconds_of(read_run(folder.path().string())) == 9.0);
  files.add(R"({"record":"run","model":"small_cnn","world_size":1,"steps_done":30})")
      .add(R"({"record":"result","epoch":3,"train_loss":null,"test_loss":1.1,"test_accuracy":62,"total_seconds":0.5,)"
           R"("peak_tensor_bytes":{"data":2048,"activations":32}})")
      .write(folder);
  const RunData run = read_run(folder.path().string());
  CHECK((run.state == RunState::finished && run.sessions == 2 && run.is_whole && run.epochs.back().train_loss == 1.0));
  CHECK(run.peak_tensor_bytes == NumberTable{{"data", 4096.0}, {"gradients", 64.0}, {"activations", 32.0}});
  CHECK(seconds_of(run) == 7.5);  // the sum of its epochs
}

TEST_CASE("report: a run of so many steps has as many epochs as these make") {
  const TemporaryDirectory folder;
  write_bytes(folder / "log.jsonl",
              R"({"record":"run","steps_done":0,"steps_per_epoch":8,"config":{"epochs":8,"steps":17}})"
              "\n");
  CHECK(read_run(folder.path().string()).planned_epochs == 3.0);
}

TEST_CASE("report: a run of no epochs is finished, not diverged") {
  const TemporaryDirectory folder;
  for (const char* const train : {"", R"("train_loss":null,"train_accuracy":null,)"}) {
    RunFiles("cifar10", 0)
        .add(fmt::format(R"({{"record":"result","epoch":0,{}"test_loss":2.3,"test_accuracy":10,"total_seconds":1}})",
                         train))
        .write(folder);
    const RunData run = read_run(folder.path().string());
    CHECK((run.state == RunState::finished && run.epochs.size() == 1 && run.epochs[0].test_loss == 2.3));
  }
}

TEST_CASE("report: the log of a run that began in another folder does not hold all of it") {
  const TemporaryDirectory folder;
  write_bytes(folder / "log.jsonl", R"({"record":"run","model":"m","steps_done":30})");
  CHECK(!read_run(folder.path().string()).is_whole);
}

TEST_CASE("report: what is no run says why") {
  const TemporaryDirectory folder;
  write_bytes(folder / "page.html", "<p>");
  CHECK(reason_of_no_run(folder / "page.html") == "is no folder of a run");
  CHECK(reason_of_no_run(folder / "none") == "is no folder of a run");
  CHECK(reason_of_no_run(folder.path().string()) == "holds neither log.jsonl nor config.toml");
  write_bytes(folder / "config.toml", "");
  CHECK(reason_of_no_run(folder.path().string()).empty());
}

TEST_CASE("report: a run that diverged, has no epoch yet, or was cut off in a line") {
  const TemporaryDirectory folder;
  RunFiles("cifar10").write(folder);
  CHECK(read_run(folder.path().string()).state == RunState::not_begun);
  RunFiles("cifar10").add(R"({"record":"epoch","epoch":1,"train_loss":null,"test_loss":null})").result(1).write(folder);
  CHECK(read_run(folder.path().string()).state == RunState::diverged);
  CHECK(reason_of_divergence(read_run(folder.path().string())) == "its loss is not a finite number any more.");
  const auto reason_with = [&](const std::string& fields) {
    RunFiles("cifar10")
        .add(R"({"record":"epoch","epoch":1,"train_loss":2.5,"diverged":{)" + fields + "}}")
        .write(folder);
    const RunData run = read_run(folder.path().string());
    CHECK(run.state == RunState::diverged);
    CHECK_THAT(judge(run).reasons.at(0), ContainsText(reason_of_divergence(run)));
    return reason_of_divergence(run);
  };
  CHECK(reason_with(R"("step":41,"skipped_steps":0)") == "the loss of step 41 is not a finite number.");
  CHECK(reason_with(R"("step":41,"skipped_steps":40)") == "the loss scale skipped 40 steps in a row, up to step 41.");
  write_bytes(folder / "log.jsonl", three_epochs().text() + R"({"record":"epoch","epo)");
  const RunData cut = read_run(folder.path().string());
  CHECK((cut.problems.empty() && cut.epochs.size() == 3 && cut.state == RunState::unfinished));
}

TEST_CASE("report: damage is named by file and line, and the rest is read") {
  const TemporaryDirectory folder;
  three_epochs().add("{]").add("[1,2]").epoch(4, 0.9, 61, 1.0, 63).write(folder);
  write_bytes(folder / "evaluation.json", "{\n\"split\": \"test\",\n oops");
  write_bytes(folder / "environment.json", "[]");
  write_bytes(folder / "final.safetensors", "none");
  const RunData run = read_run(folder.path().string());
  CHECK(run.epochs.size() == 4);
  CHECK((!run.evaluation && !run.filters));
  REQUIRE(run.problems.size() == 5);
  CHECK_THAT(run.problems[0], ContainsText("log.jsonl:5: is no record"));
  CHECK_THAT(run.problems[1], ContainsText("log.jsonl:6: is no record"));
  CHECK_THAT(run.problems[2], ContainsText("environment.json: is no JSON object"));
  CHECK_THAT(run.problems[3], ContainsText("evaluation.json:3: is no JSON"));
  CHECK_THAT(run.problems[4], ContainsText("final.safetensors"));
  write_bytes(folder / "evaluation.json", R"({"split": 1e999})");
  CHECK_THAT(read_run(folder.path().string()).problems[3], ContainsText("evaluation.json: has a number that is too"));
}

TEST_CASE("report: records of an epoch or step that cannot be are named") {
  const TemporaryDirectory folder;
  RunFiles files = three_epochs();
  for (const char* const number : {"1e300", "-5", "0", "1.5", "null", "\"2\""})
    files.add(fmt::format(R"({{"record":"epoch","epoch":{},"train_loss":1.0}})", number));
  files.add(R"({"record":"step","step":-1})").add(R"({"record":"something new"})").write(folder);
  const RunData run = read_run(folder.path().string());
  CHECK((run.epochs.size() == 3 && run.steps.empty()));
  REQUIRE(run.problems.size() == 6);
  for (std::size_t i = 0; i < 5; ++i)
    CHECK_THAT(run.problems[i], ContainsText(fmt::format("log.jsonl:{}: is no", 5 + i)));
  CHECK_THAT(run.problems[5], ContainsText("2 more lines"));
}

TEST_CASE("report: a log of lines that are no records is told in a few lines") {
  const TemporaryDirectory folder;
  RunFiles files;
  for (int i = 0; i < 100; ++i) files.add("?");
  files.write(folder);
  const RunData run = read_run(folder.path().string());
  CHECK(run.problems.size() == 6);
  CHECK_THAT(run.problems.back(), ContainsText("95 more lines"));
}

TEST_CASE("report: tables of an evaluation that do not fit are refused, and so are images that are none") {
  const TemporaryDirectory folder;
  three_epochs().write(folder);
  const auto problem_of = [&](const std::string& json) {
    write_bytes(folder / "evaluation.json", json);
    const RunData run = read_run(folder.path().string());
    CHECK(!run.evaluation);
    return run.problems.empty() ? std::string() : run.problems[0];
  };
  CHECK_THAT(problem_of(R"({"classes":["a","b"],"confusion":[[1,2]]})"), ContainsText("1 rows for 2 classes"));
  CHECK_THAT(problem_of(R"({"classes":["a","b"],"confusion":[[1,2],[3]]})"), ContainsText("row 1"));
  CHECK_THAT(problem_of(R"({"classes":["a"],"confusion":[[-1]]})"), ContainsText("row 0"));
  CHECK_THAT(problem_of(R"({"worst":[{"index":3,"png":"\"><script>"}]})"), ContainsText("index 3 is no PNG"));
  CHECK_THAT(problem_of(R"({"worst":[{"index":3,"png":"aGVsbG8="}]})"), ContainsText("index 3 is no PNG"));
  write_bytes(folder / "evaluation.json",
              R"({"classes":7,"confusion":"x","per_class":[1,{}],"calibration":[],"worst":{}})");
  const RunData odd = read_run(folder.path().string());
  CHECK((odd.evaluation && odd.evaluation->confusion.empty() && odd.problems.empty()));
}

TEST_CASE("report: filters of the first convolution, where they can be seen") {
  const TemporaryDirectory folder;
  three_epochs().write(folder);
  using tandem::Tensor;
  tandem::layers::write_safetensors(folder / "final.safetensors",
                                    {{"bias", Tensor::zeros({4})}, {"conv.weight", Tensor::zeros({70, 3, 3, 3})}});
  const RunData run = read_run(folder.path().string());
  REQUIRE(run.filters);
  CHECK((run.filters->pictures.size() == 64 && run.filters->channels == 3 && run.filters_name == "conv.weight"));
  tandem::layers::write_safetensors(folder / "final.safetensors", {{"conv.weight", Tensor::zeros({8, 16, 3, 3})}});
  CHECK(!read_run(folder.path().string()).filters);
}

TEST_CASE("report: what is no run directory is refused") {
  const TemporaryDirectory folder;
  CHECK_THROWS_WITH(read_run(folder / "none"), ContainsText("is no folder of a run"));
  CHECK_THROWS_WITH(read_run(folder.path().string()), ContainsText("neither log.jsonl nor config.toml"));
  write_bytes(folder / "config.toml", "lr = 0.1\n");
  const RunData run = read_run(folder.path().string());
  CHECK((run.config_text == "lr = 0.1\n" && run.state == RunState::not_begun));
}

// What a study's file may hold, and what is said of what it may not.
#include "apps/study/study_file.h"
#include "tandem/core/error.h"
#include "tests/apps/study_support.h"
#include "tests/support/catch.h"

#include <string>
#include <vector>

using namespace tandem;
using namespace tandem::study;
using tandem::test::study_of;

namespace {

const std::string kBegin = "title = \"T\"\n";
const std::string kGrid = "[grid]\nlr = [0.1, 0.2]\n";

std::string error_of(const std::string& text) {
  try {
    study_of(text);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("what the parser says of a study's file is one line") {
  CHECK(
      error_of("title = \"T\"\nquestion = t\n" + kGrid) ==
      R"(tests/some.toml:2: Error while parsing boolean: expected 'true', saw 't\x0a'; docs/study.md shows a study's file)");
}

TEST_CASE("a study of two flags with three values each is a short file") {
  const Study study = study_of(
      "title = \"Batch and rate\"\nmeasure = [\"test_accuracy\", \"seconds\"]\nplot = [\"line test_accuracy over "
      "batch-size\", \"bars peak_memory\"]\n[run]\nepochs = 2\nbatch-norm = true\n[quick]\nlimit-train = 100\n[grid]\n"
      "lr = [0.05, 0.1, 1e-3]\nbatch-size = [16, 32, 64]\n");
  CHECK(study.name == "some");
  CHECK(study.program == "cifar_train");
  CHECK(study.all == Settings{{"epochs", "2"}, {"batch-norm", "true"}});
  CHECK(study.quick == Settings{{"limit-train", "100"}});
  REQUIRE(study.grid.size() == 2);
  CHECK(study.grid[0].name == "lr");  // as in the file, not by name
  CHECK(study.grid[0].values == std::vector<std::string>{"0.05", "0.1", "0.001"});
  REQUIRE(study.plots.size() == 2);
  CHECK(study.plots[0].kind == PlotKind::line);
  CHECK(study.plots[0].over == "batch-size");
  CHECK(study.measures == std::vector<std::string>{"test_accuracy", "seconds", "peak_memory"});  // what is plotted
}

TEST_CASE("variants have settings and lists that go together") {
  const Study study = study_of(kBegin +
                               "[[variant]]\nname = \"a\"\nlr = [0.1, 0.2]\nbatch-size = [16, 32]\n[[variant]]\nname = "
                               "\"b\"\ndropout = 0.5\n[baseline]\nvariant = \"b\"\n");
  REQUIRE(study.variants.size() == 2);
  CHECK(study.variants[0].together.size() == 2);
  CHECK(study.variants[1].settings == Settings{{"dropout", "0.5"}});
  CHECK(study.baseline == Settings{{"variant", "b"}});
}

TEST_CASE("what is wrong in a study's file is told with its place and a remedy") {
  const std::vector<std::pair<std::string, std::string>> cases{
      {kGrid, "tests/some.toml: title: it is missing; give the study one, as title = \"Batch size\""},
      {kBegin, "tests/some.toml: [grid]: a study varies something; list values, as batch-size = [16, 32] below [grid]"},
      {kBegin + "quesion = \"x\"\n" + kGrid, "tests/some.toml:2: unknown key 'quesion': did you mean question?"},
      {kBegin + "lr = 0.1\n" + kGrid,
       "tests/some.toml:2: 'lr' is an option of runs: write it below [run], or below [grid]"},
      {kBegin + "[grid]\nbatchsize = [1]\n",
       "tests/some.toml:3: 'batchsize' is no option of cifar_train: did you mean batch-size?"},
      {kBegin + "[grid]\nlr = 0.1\n",
       "tests/some.toml:3: lr: is one value; [grid] has lists such as [1, 2], and [run] has values"},
      {kBegin + "[grid]\nlr = []\n", "tests/some.toml:3: lr: the list is empty; give it values"},
      {kBegin + "[grid]\nlr = [0.1, 0.1]\n", "tests/some.toml:3: lr: has 0.1 twice; name each value once"},
      {kBegin + "[run]\nlr = [0.1]\n" + kGrid,
       "tests/some.toml:3: lr: is a list; what a study varies stands below [grid] or [[variant]]"},
      {kBegin + "[run]\nseed = 3\n" + kGrid,
       "tests/some.toml:3: seed: is given to each run by the study itself; leave it out"},
      {kBegin + "measure = [\"accuracy\"]\n" + kGrid, "tests/some.toml:2: measure: unknown measure 'accuracy'"},
      {kBegin + "measure = 3\n" + kGrid,
       "tests/some.toml:2: measure: is no list of texts; write measure = [\"...\", \"...\"]"},
      {kBegin + "measure = [\"seconds\", \"gap\", \"seconds\"]\n" + kGrid,
       "tests/some.toml:2: measure: has seconds twice; name each measure once"},
      {kBegin + "plot = [\"bars seconds\", \"bars  seconds\"]\n" + kGrid,
       "tests/some.toml:2: plot: has 'bars  seconds' twice; name each plot once"},
      {kBegin + "plot = \"pie seconds\"\n" + kGrid, "tests/some.toml:2: plot: unknown kind 'pie'"},
      {kBegin + "plot = \"line seconds\"\n" + kGrid,
       "tests/some.toml:2: plot: 'line seconds': a line is \"line MEASURE over OPTION\""},
      {kBegin + "plot = \"line seconds over epochs\"\n" + kGrid,
       "tests/some.toml:2: plot: 'epochs' is not varied; over what is varied: lr"},
      {kBegin + "plot = \"curves gap\"\n" + kGrid,
       "tests/some.toml:2: plot: there are no curves of gap over epochs; plot \"bars gap\""},
      {kBegin + "plot = \"line seconds over optimizer\"\n[grid]\noptimizer = [\"sgd\", \"adam\"]\n",
       "tests/some.toml:2: plot: the values of optimizer are no numbers; plot \"bars seconds\""},
      {kBegin + "plot = \"line seconds over lr\"\n[grid]\nlr = [0.1, nan]\n",
       "tests/some.toml:2: plot: the values of lr are no numbers; plot \"bars seconds\""},
      {kBegin + "plot = \"layers norm\"\n" + kGrid, "tests/some.toml:2: plot: unknown figure of layers 'norm'"},
      {kBegin + "plot = \"layers gradient_norm\"\n" + kGrid,
       "tests/some.toml:2: plot: gradient_norm is known of runs that log it; write log-norms = true below [run]"},
      {kBegin + "plot = \"layers dead_relus\"\n" + kGrid,
       "tests/some.toml:2: plot: dead_relus is known of runs that log it; write log-dead-relus = true below [run]"},
      {kBegin + "plot = \"ranks speed_up\"\n" + kGrid, "tests/some.toml:2: plot: unknown figure of ranks 'speed_up'"},
      {kBegin + "number = 0\n" + kGrid, "tests/some.toml:2: number: is no whole number from 1 to 99"},
      {kBegin + "best-of = \"epochs\"\n" + kGrid,
       "tests/some.toml:2: best-of: 'epochs' is not varied; one of what is varied: lr"},
      {kBegin + "best-of = \"lr\"\nbest-by = \"epochs\"\n" + kGrid,
       "tests/some.toml:3: best-by: of epochs, neither more nor less is better"},
      {kBegin + "[[variant]]\nname = \"a\"\noptional = 3\n", "tests/some.toml:4: optional: is neither true nor false"},
      {kBegin + "[[variant]]\nlr = 0.1\n", "tests/some.toml:2: variant: it has no name; give it one"},
      {kBegin + "[[variant]]\nname = \"a\"\n[[variant]]\nname = \"a\"\n",
       "tests/some.toml:4: variant: there are two of the name 'a'"},
      {kBegin + "[[variant]]\nname = \"a\"\nlr = [0.1]\nbatch-size = [1, 2]\n",
       "tests/some.toml:5: batch-size: has 2 values, and lr has 1; lists of a variant go together, so make them "
       "equally long"},
      {kBegin + "[[variant]]\nname = \"a\"\nlr = 0.1\n" + kGrid,
       "tests/some.toml:6: lr: stands in a variant, too; leave one of them out"},
      {kBegin + kGrid + "[baseline]\nlr = 0.3\n", "tests/some.toml:5: baseline: unknown lr '0.3'"},
      {kBegin + kGrid + "[baseline]\nepochs = 2\n",
       "tests/some.toml:5: baseline: 'epochs' is not varied; one of what is varied: lr"},
      {kBegin + "run = 3\n" + kGrid, "tests/some.toml:2: run: is no section; write [run] on a line of its own"},
      {kBegin + "variant = 3\n",
       "tests/some.toml:2: variant: is no list of sections; write [[variant]] on a line of its own"},
      {kBegin + "[run]\nno-run-dir = true\n" + kGrid,
       "tests/some.toml:3: no-run-dir: with it there is no run to read figures of; leave it out"},
      {kBegin + "[run]\nhelp = true\n" + kGrid, "tests/some.toml:3: help: with it there is no run"},
      {kBegin + "[run]\nversion = true\n" + kGrid, "tests/some.toml:3: version: with it there is no run"},
      {kBegin + "[run]\nprint-config = true\n" + kGrid, "tests/some.toml:3: print-config: with it there is no run"},
      {kBegin + "[run]\njson = true\n" + kGrid, "tests/some.toml:3: json: is given to each run by the study itself"},
      {kBegin + "[[variant]]\nname = \"a\"\nlr = [1, 1]\nbatch-size = [1, 2]\n",
       "tests/some.toml:4: lr: has 1 twice; name each value once"},
      {kBegin + "[run]\nhosts = \"a,b\"\n[grid]\nranks = [2, 1]\n",
       "tests/some.toml: hosts: ranks 1 has hosts and not at least 2 ranks to start there; give it ranks = 2 or more, "
       "or "
       "no hosts"},
      {kBegin + "[full]\nhosts = \"a,b\"\n" + kGrid, "tests/some.toml: hosts: lr 0.1 has hosts and not at least 2"},
      {kBegin + "[grid\nlr = 3\n", "tests/some.toml:2: "},
      {kBegin + "[grid]\nlr = [[1], [2]]\n",
       "tests/some.toml:3: lr: is no number, text, true or false; write one value"},
  };
  for (const auto& [text, error] : cases) {
    INFO(text);
    CHECK_THAT(error_of(text), test::ContainsText(error));
  }
}

TEST_CASE("a study that would make thousands of runs is refused") {
  std::string values = "1";
  for (int i = 2; i <= 40; ++i) values += ", " + std::to_string(i);
  CHECK_THAT(error_of(kBegin + "[grid]\nlr = [" + values + "]\nepochs = [" + values + "]\n"),
             test::ContainsText("makes 1600 combinations, and a study has at most 1000"));
  const std::string variant = "[[variant]]\nname = \"a\"\nlr = [" + values + "]\n";
  CHECK_THAT(error_of(kBegin + variant + "[grid]\nepochs = [" + values + "]\n"),
             test::ContainsText("epochs: makes 1600 combinations"));
  std::string many = values;
  for (int i = 41; i <= 1001; ++i) many += ", " + std::to_string(i);
  CHECK_THAT(error_of(kBegin + "[[variant]]\nname = \"a\"\nlr = [" + many + "]\n"),
             test::ContainsText("tests/some.toml:2: variant: makes 1001 combinations"));
  // Of lists that go together the others may repeat a value.
  CHECK(error_of(kBegin + "[[variant]]\nname = \"a\"\nlr = [1, 2]\nbatch-size = [8, 8]\n").empty());
}

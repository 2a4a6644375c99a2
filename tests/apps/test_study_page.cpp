// Pages and pictures over results that no program has made.
#include "apps/study/charts.h"
#include "apps/study/page.h"
#include "apps/study/reading.h"
#include "tests/apps/study_support.h"
#include "tests/support/catch.h"

#include <cmath>
#include <string>
#include <vector>

using namespace tandem;
using namespace tandem::study;
using test::ContainsText;
using test::failed_run;
using test::finished_run;

namespace {

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != text.npos; at += part.size()) ++count;
  return count;
}

Study batches() {
  return test::study_of(
      "title = \"T <i>\"\nquestion = \"Q & <b>\"\nnote = \"N\"\nmeasure = \"test_accuracy\"\nplot = [\"line "
      "test_accuracy over batch-size\", \"curves train_loss\", \"bars seconds\"]\n[grid]\noptimizer = [\"sgd\", "
      "\"adam\"]\nbatch-size = [64, 16]\n");
}

std::vector<KeptRun> two(double accuracy) { return {finished_run(accuracy, 1.0), finished_run(accuracy + 2.0, 1.1)}; }

}  // namespace

TEST_CASE("a study's page has its question, reading, table and pictures, and no markup of its file's") {
  const Results results = test::results_of(
      batches(), {two(50.0), two(60.0), two(40.0), {failed_run("<script>alert(1)</script>"), finished_run(1.0, 1.0)}});
  const std::string page = study_page({results});
  CHECK_THAT(page, ContainsText("T &lt;i&gt;") && ContainsText("Q &amp; &lt;b&gt;") &&
                       ContainsText("Failed, &lt;script&gt;alert(1)&lt;/script&gt;: optimizer adam"));
  CHECK(count_of(page, "<script") == 0);
  CHECK(count_of(page, "<svg") == 3);
  CHECK(count_of(page, "href=\"#") == 0);  // one study needs no contents
  for (const std::string& sentence : reading_of(results)) CHECK_THAT(page, ContainsText(sentence));
  CHECK(count_of(study_page({results, results}), "href=\"#some\"") == 2);
}

TEST_CASE("a page of runs none of which is done says so") {
  const Study study = batches();
  const std::vector<KeptRun> none(2);
  const std::string page = study_page({test::results_of(study, {none, none, none, none})});
  CHECK_THAT(page, ContainsText("no run is done yet") && ContainsText("Not begun: ") &&
                       ContainsText("Test accuracy: no run has a figure of it."));
  CHECK(count_of(page, "nan") == 0);
}

TEST_CASE("a line goes over its dimension in order, one for each of the others, with a band") {
  const Results results = test::results_of(batches(), {two(50.0), two(60.0), two(40.0), two(45.0)});
  const train::plot::LineChart chart = line_chart(results, results.plan.study.plots[0]);
  REQUIRE(chart.series.size() == 2);
  CHECK(chart.series[0].name == "optimizer sgd");
  CHECK(chart.series[0].x == std::vector<double>{16.0, 64.0});
  CHECK(chart.series[0].y == std::vector<double>{61.0, 51.0});
  CHECK(chart.series[0].low[0] == Approx(61.0 - std::sqrt(2.0)));
  CHECK(chart.series[1].y == std::vector<double>{46.0, 41.0});
}

TEST_CASE("a line over bytes has round numbers of them, and wide figures get a logarithmic axis") {
  const Study study = test::study_of(
      "title = \"T\"\nprogram = \"allreduce_bench\"\nmeasure = \"all_reduce_seconds\"\nplot = \"line seconds over "
      "min-bytes\"\n[grid]\nmin-bytes = [1024, 16384, 262144]\n");
  const auto chart = [&](double slowest) {
    return line_chart(
        test::results_of(study, {{finished_run(1.0, 1.0)}, {finished_run(1.0, 4.0)}, {finished_run(1.0, slowest)}}),
        {PlotKind::line, "seconds", "min-bytes"});
  };
  CHECK(chart(60.0).x.unit == train::plot::Unit::bytes);
  CHECK(chart(60.0).y.logarithmic);
  CHECK_FALSE(chart(40.0).y.logarithmic);
}

TEST_CASE("a variant that does not vary what a line goes over has no place on it") {
  const Study study = test::study_of(
      "title = \"T\"\nmeasure = \"test_accuracy\"\nplot = \"line test_accuracy over batch-size\"\n[[variant]]\nname = "
      "\"a\"\nbatch-size = [16, 32]\n[[variant]]\nname = \"b\"\nlr = 1\n");
  const train::plot::LineChart chart =
      line_chart(test::results_of(study, {two(50.0), two(60.0), two(40.0)}), study.plots[0]);
  REQUIRE(chart.series.size() == 1);
  CHECK(chart.series[0].x == std::vector<double>{16.0, 32.0});
}

TEST_CASE("curves leave out what failed, and norms of layers go from the first to the last") {
  KeptRun deep = finished_run(50.0, 1.0);
  deep.data->epochs.back().layers = {{"a", 0.1, 1.0, 2.0}, {"b", 0.3, 1.0, 2.0}, {"c", 0.0, 1.0, 2.0}};
  deep.data->scaling.emplace();
  deep.data->scaling->of = {{1.0, 0.0, 0.0, 1.0}, {2.0, 0.0, 0.0, 1.5}, {64.0, 0.0, 0.0, 20.0}};
  deep.data->epochs.back().relus = {{"a", 8.0, 2.0}, {"b", 4.0, 4.0}};
  Study study = batches();
  const Results results = test::results_of(study, {{deep}, {failed_run("x")}, {finished_run(1.0, 1.0)}, {deep}});
  CHECK(line_chart(results, study.plots[1]).series.size() == 3);
  const train::plot::LineChart layers = line_chart(results, {PlotKind::layers, "gradient_norm"});
  REQUIRE(layers.series.size() == 2);
  CHECK(layers.series[0].x == std::vector<double>{1.0, 2.0, 3.0});
  CHECK(layers.series[0].y == std::vector<double>{0.1, 0.3, 0.0});
  const train::plot::LineChart relus = line_chart(results, {PlotKind::layers, "dead_relus"});
  REQUIRE(relus.series.size() == 2);
  CHECK(relus.series[0].y == std::vector<double>{25.0, 100.0});
  CHECK(title_of({PlotKind::layers, "dead_relus"}) == "dead channels of each ReLU, from the first");
  CHECK(find_measure("dead_relus").value(*deep.data, nullptr) == 50.0);
  const train::plot::LineChart ranks = line_chart(results, {PlotKind::ranks, "predicted_speed_up"});
  REQUIRE(ranks.series.size() == 2);
  CHECK(ranks.series[0].x == std::vector<double>{1.0, 2.0, 64.0});
  CHECK(ranks.series[0].y == std::vector<double>{1.0, 1.5, 20.0});
  const train::plot::BarChart bars = bar_chart(results, study.plots[2]);
  REQUIRE(bars.bars.size() == 4);
  CHECK(bars.bars[1].name == "sgd \xC2\xB7 16");
  CHECK(bar_names(results, study.plots[2]) == "optimizer \xC2\xB7 batch-size");
  CHECK(bars.bars[1].text == "\xE2\x80\x93");
  CHECK(bars.bars[0].text == "1 s");
}

// Details of an evaluation against numbers worked out by hand, and over ranks.
#include "tandem/train/evaluation_details.h"

#include "tandem/comm/backends/backend.h"
#include "tandem/data/synthetic.h"
#include "tandem/layers/layers.h"
#include "tandem/optim/sgd.h"
#include "tandem/train/evaluation_json.h"
#include "tandem/train/trainer.h"
#include "tests/comm/thread_ranks.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"
#include "tests/support/temporary_directory.h"

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>

using namespace tandem;
using namespace tandem::test;
using namespace tandem::train;

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

/// Outputs whose softmax has this probability at `place`, and the rest shared by the other two classes.
std::vector<float> outputs(double probability, std::size_t place) {
  std::vector<float> row(3, static_cast<float>(std::log((1.0 - probability) / 2.0)));
  row[place] = static_cast<float>(std::log(probability));
  return row;
}

struct Image {
  std::int64_t label;
  std::vector<float> outputs;
};

/// Eight images of three classes.
std::vector<Image> eight_images() {
  return {{0, outputs(0.90, 0)}, {0, outputs(0.62, 0)}, {0, outputs(0.70, 1)}, {1, outputs(0.91, 1)},
          {1, outputs(0.72, 2)}, {2, outputs(0.95, 2)}, {2, outputs(0.50, 0)}, {2, {0.0f, kInf, 1.0f}}};
}

void add(EvaluationDetails& details, const std::vector<Image>& images, std::size_t begin, std::size_t end) {
  std::vector<float> rows;
  std::vector<std::int64_t> labels, numbers;
  for (std::size_t i = begin; i < end; ++i) {
    rows.insert(rows.end(), images[i].outputs.begin(), images[i].outputs.end());
    labels.push_back(images[i].label);
    numbers.push_back(static_cast<std::int64_t>(100 + i));
  }
  const auto count = static_cast<std::int64_t>(labels.size());
  details.add(Tensor::from(rows, {count, 3}), Tensor::from(labels, {count}), numbers);
}

void check_eight(const EvaluationReport& report) {
  CHECK(report.images == 8);
  CHECK(report.classes == 3);
  CHECK(report.confusion == std::vector<std::int64_t>{2, 1, 0, 0, 1, 1, 1, 0, 1});
  CHECK(report.class_images == std::vector<std::int64_t>{3, 2, 3});
  CHECK(report.class_accuracy(0) == Approx(200.0 / 3));
  CHECK(report.class_accuracy(1) == 50.0);
  CHECK(report.class_accuracy(2) == Approx(100.0 / 3));
  // Bins of a fifteenth: 0.50 in (7/15, 8/15], 0.62 in (9/15, 10/15], 0.70 and 0.72 in (10/15, 11/15], 0.90 and 0.91 in
  // (13/15, 14/15], 0.95 in the last.
  REQUIRE(report.bins.size() == 15);
  const std::vector<std::int64_t> images{0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 2, 0, 0, 2, 1},
      correct{0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2, 1};
  for (std::size_t b = 0; b < 15; ++b) {
    CAPTURE(b);
    CHECK(report.bins[b].images == images[b]);
    CHECK(report.bins[b].correct == correct[b]);
    CHECK(report.bins[b].from == Approx(static_cast<double>(b) / 15).margin(1e-12));
    CHECK(report.bins[b].to == Approx(static_cast<double>(b + 1) / 15));
  }
  CHECK(report.bins[10].confidence == Approx(0.71).epsilon(1e-6));
  CHECK(report.bins[13].confidence == Approx(0.905).epsilon(1e-6));
  CHECK(report.bins[0].confidence == 0.0);
  // (1 x |0 - 0.50| + 1 x |1 - 0.62| + 2 x |0 - 0.71| + 2 x |1 - 0.905| + 1 x |1 - 0.95|) / 7
  CHECK(report.ece == Approx((0.50 + 0.38 + 1.42 + 0.19 + 0.05) / 7).epsilon(1e-6));
  // -log of 0.14 (image 4), 0.15 (image 2) and 0.25 (image 6).
  REQUIRE(report.worst.size() == 3);
  CHECK(report.worst[0].index == 104);
  CHECK(report.worst[0].label == 1);
  CHECK(report.worst[0].predicted == 2);
  CHECK(report.worst[0].confidence == Approx(0.72).epsilon(1e-6));
  CHECK(report.worst[0].loss == Approx(-std::log(0.14)).epsilon(1e-6));
  CHECK(report.worst[1].index == 102);
  CHECK(report.worst[2].index == 106);
}

void check_equal(const EvaluationReport& a, const EvaluationReport& b) {
  CHECK(a.confusion == b.confusion);
  CHECK(a.class_images == b.class_images);
  CHECK(a.ece == b.ece);
  CHECK(a.worst == b.worst);
  for (std::size_t i = 0; i < a.bins.size(); ++i) CHECK(a.bins[i].confidence == b.bins[i].confidence);
}

}  // namespace

TEST_CASE("an evaluation's details are those worked out by hand, however the images come", "[threads]") {
  const std::vector<Image> images = eight_images();
  comm::ProcessGroup alone(comm::make_self_backend());
  EvaluationDetails whole, parts;
  add(whole, images, 0, 8);
  const EvaluationReport expected = whole.report(alone);
  check_eight(expected);
  for (std::size_t i = 0; i < 8; ++i) add(parts, images, i, i + 1);
  check_equal(parts.report(alone), expected);
  const std::size_t first = GENERATE(0, 3, 8);  // of the first rank; one rank may have none
  CAPTURE(first);
  std::vector<EvaluationReport> reports(2);
  run_thread_ranks(2, [&](comm::ProcessGroup& group) {
    EvaluationDetails mine;
    const std::size_t begin = group.rank() == 0 ? 0 : first, end = group.rank() == 0 ? first : 8;
    if (end > begin) add(mine, images, begin, end);
    reports[static_cast<std::size_t>(group.rank())] = mine.report(group);
  });
  for (const EvaluationReport& report : reports) {
    check_eight(report);
    check_equal(report, expected);
  }
}

TEST_CASE("the worst 24 of all ranks are kept, the smaller number first of equal ones", "[threads]") {
  std::vector<Image> images;
  for (int i = 0; i < 60; ++i) images.push_back({0, outputs(0.4 + 0.01 * ((i * 7) % 20), 1)});
  comm::ProcessGroup alone(comm::make_self_backend());
  EvaluationDetails details;
  add(details, images, 0, 60);
  const EvaluationReport report = details.report(alone);
  REQUIRE(report.worst.size() == 24);
  std::vector<std::size_t> order(60);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return (a * 7) % 20 > (b * 7) % 20; });
  for (std::size_t i = 0; i < 24; ++i) CHECK(report.worst[i].index == static_cast<std::int64_t>(100 + order[i]));
  run_thread_ranks(2, [&](comm::ProcessGroup& group) {
    EvaluationDetails mine;
    for (std::size_t i = static_cast<std::size_t>(group.rank()); i < 60; i += 2) add(mine, images, i, i + 1);
    if (mine.report(group).worst != report.worst) fail("rank {} has others", group.rank());
  });
}

TEST_CASE("an evaluation of nothing, and what is no evaluation") {
  comm::ProcessGroup group(comm::make_self_backend());
  EvaluationDetails details;
  CHECK(details.report(group).images == 0);
  CHECK(details.report(group).ece == 0.0);
  const std::vector<std::int64_t> numbers{0};
  CHECK_THAT(error_of([&] { details.add(Tensor::zeros({1, 3}), Tensor::zeros({1}), numbers); }),
             ContainsText("needs outputs [N, C], labels i64 [N]"));
  CHECK_THAT(error_of([&] { details.add(Tensor::zeros({1, 3}), Tensor::from<std::int64_t>({3}, {1}), numbers); }),
             ContainsText("label 3 is not one of 3 classes"));
  CHECK_THAT(error_of([&] { details.add(Tensor::zeros({1, 4}), Tensor::from<std::int64_t>({3}, {1}), numbers); }),
             ContainsText("outputs of 4 classes after those of 3"));
}

TEST_CASE("the file of an evaluation has its numbers, and the pictures of the worst") {
  comm::ProcessGroup group(comm::make_self_backend());
  data::ImageDataset set = data::make_synthetic({.count = 120, .channels = 3, .side = 8, .seed = 2});
  set.class_names = {"a", "b\xff", "c"};
  EvaluationDetails details;
  add(details, eight_images(), 0, 8);
  EvaluationReport report = details.report(group);
  report.split = "test";
  report.epoch = 4;
  report.loss = std::nan("");
  report.accuracy = 50.0;
  const TemporaryDirectory folder;
  const std::string path = (folder.path() / "evaluation.json").string();
  write_evaluation(path, report, set);
  std::ifstream file(path);
  const auto json = nlohmann::ordered_json::parse(file);
  CHECK(json["split"] == "test");
  CHECK(json["epoch"] == 4);
  CHECK(json["images"] == 8);
  CHECK(json["loss"].is_null());
  CHECK(json["accuracy"] == 50.0);
  CHECK(json["classes"].size() == 3);
  CHECK(json["confusion"] == nlohmann::ordered_json::parse("[[2,1,0],[0,1,1],[1,0,1]]"));
  CHECK(json["per_class"][1]["images"] == 2);
  CHECK(json["per_class"][1]["accuracy"] == 50.0);
  CHECK(json["per_class"][0]["class"] == "a");
  CHECK(json["calibration"]["ece"] == report.ece);
  CHECK(json["calibration"]["bins"].size() == 15);
  CHECK(json["calibration"]["bins"][10]["images"] == 2);
  REQUIRE(json["worst"].size() == 3);
  CHECK(json["worst"][0]["index"] == 104);
  if (json["worst"][0].contains("png")) {  // 89 50 4e 47 0d 0a 1a 0a 00
    CHECK(json["worst"][0]["png"].get<std::string>().starts_with("iVBORw0KGgoA"));
    CHECK(json["worst"][0]["png"].get<std::string>().size() % 4 == 0);
  }
  CHECK_THAT(error_of([&] { write_evaluation((folder.path() / "none/e.json").string(), report, set); }),
             ContainsText("none"));
  set.class_names.emplace_back("d");
  CHECK_THAT(error_of([&] { evaluation_json(report, set); }), ContainsText("of 3 classes, data set 'synthetic' has 4"));
}

TEST_CASE("a trainer reports its last evaluation, the same on any number of ranks", "[threads]") {
  const auto images = std::make_shared<const data::ImageDataset>(
      data::make_synthetic({.count = 23, .channels = 1, .side = 8, .seed = 3}));
  const auto report_of = [&](comm::ProcessGroup& group, bool validates) {
    const int size = group.size(), rank = group.rank();
    data::Loader loader(images, {23, size, rank, true, 1}, {.global_batch_size = 8}),
        test(images, {23, size, rank, false, 1}, {.global_batch_size = 6});
    layers::Sequential model;
    layers::Initializer initializer(1);
    model.add<layers::Flatten>();
    model.add<layers::Linear>({.in = 64, .out = 10}, initializer);
    optim::SGD optimizer(model.parameters(), optim::SGDOptions{.lr = 0.1});
    Trainer trainer(model, optimizer, loader,
                    {.test = validates ? nullptr : &test,
                     .validation = validates ? &test : nullptr,
                     .group = &group,
                     .epochs = 0,
                     .detailed = true});
    const EpochRecord last = trainer.run({});
    const EvaluationReport report = trainer.evaluation_report();
    if (report.accuracy != (validates ? last.validation_accuracy : last.test_accuracy)) fail("another accuracy");
    std::int64_t correct = 0;
    for (std::int64_t c = 0; c < report.classes; ++c) correct += report.confused(c, c);
    if (std::abs(100.0 * static_cast<double>(correct) / 23 - report.accuracy) > 1e-9) fail("another diagonal");
    return report;
  };
  comm::ProcessGroup alone(comm::make_self_backend());
  const EvaluationReport expected = report_of(alone, false);
  CHECK(expected.split == "test");
  CHECK(expected.images == 23);
  CHECK_FALSE(expected.worst.empty());
  CHECK(report_of(alone, true).split == "validation");
  std::vector<EvaluationReport> reports(2);
  run_thread_ranks(
      2, [&](comm::ProcessGroup& group) { reports[static_cast<std::size_t>(group.rank())] = report_of(group, false); });
  for (const EvaluationReport& report : reports) check_equal(report, expected);
}

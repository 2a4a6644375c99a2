// The images of an evaluation as events.
#include "tandem/train/writers/tensorboard/run_events.h"

#include "tests/support/catch.h"
#include "tests/support/error_of.h"
#include "tests/support/temporary_directory.h"

#include <cmath>
#include <fstream>
#include <sstream>

using namespace tandem;
using namespace tandem::train;
using tandem::test::ContainsText;

namespace {

// A grey image of one pixel.
constexpr const char* kPng =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg==";

std::string evaluation(const std::string& png) {
  return R"({"split":"test","classes":["cat","dog"],"per_class":[{"class":"cat","accuracy":75},{"class":"dog",)"
         R"("accuracy":null}],"calibration":{"ece":0.25},"worst":[{"index":7,"label":1,"predicted":0,"confidence":0.991,)"
         R"("loss":4.7,"png":")" +
         png + "\"}]}";
}

std::string contents_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

}  // namespace

TEST_CASE("misclassified images of an evaluation become events") {
  const test::TemporaryDirectory folder;
  RunEvents events(folder.path().string(), RunRecord{});
  events.write_evaluation(folder / "missing.json", 3);
  CHECK(contents_of(events.writer().path()).find("IHDR") == std::string::npos);
  test::write_bytes(folder / "evaluation.json", evaluation(kPng));
  events.write_evaluation(folder / "evaluation.json", 3);
  const std::string file = contents_of(events.writer().path());
  CHECK_THAT(file, ContainsText("misclassified/01"));
  CHECK_THAT(file, ContainsText("accuracy_of_class/cat") && !ContainsText("accuracy_of_class/dog"));
  CHECK_THAT(file, ContainsText("calibration/expected_error"));
  CHECK_THAT(file, ContainsText("dog taken for cat (99.1 %)"));
  CHECK_THAT(file, ContainsText("\x89PNG\r\n\x1a\n"));
  CHECK_THAT(file, ContainsText("IEND\xae\x42\x60\x82"));  // the last bytes of a PNG file
}

TEST_CASE("a run that is tested once, at its end, has those figures as events") {
  const test::TemporaryDirectory folder;
  RunRecord run;
  run.validation_images = 20;
  RunEvents events(folder.path().string(), run);
  const auto count = [&](const std::string& tag) {
    const std::string text = contents_of(events.writer().path());
    int found = 0;
    for (std::size_t at = text.find(tag); at != std::string::npos; at = text.find(tag, at + 1)) ++found;
    return found;
  };
  CHECK(count("accuracy/test") == 1);  // a metric of hparams
  CHECK(count("accuracy/validation") == 1);
  EpochRecord epoch;
  epoch.test_loss = epoch.test_accuracy = std::nan("");
  epoch.validation_loss = 1.0;
  epoch.validation_accuracy = 50.0;
  events.write(epoch, 8);
  CHECK((count("accuracy/test") == 1 && count("accuracy/validation") == 2));
  EpochRecord last = epoch;
  last.test_loss = 1.5;
  last.test_accuracy = 40.0;
  last.test_metrics = {{"top5", 90.0}};
  events.write_result(last, 8);
  CHECK((count("accuracy/test") == 2 && count("loss/test") == 2 && count("top5/test") == 1));
  CHECK(count("accuracy/validation") == 2);

  RunEvents tested(folder.path().string(), RunRecord{});
  tested.write(last, 8);
  tested.write_result(last, 8);  // which the epoch has told
  CHECK(contents_of(tested.writer().path()).find("accuracy/validation") != std::string::npos);
  const std::string text = contents_of(tested.writer().path());
  CHECK(text.find("top5/test") == text.rfind("top5/test"));
}

TEST_CASE("damaged evaluations are refused, and named") {
  const test::TemporaryDirectory folder;
  RunEvents events(folder.path().string(), RunRecord{});
  const std::string path = folder / "evaluation.json";
  for (const std::string& text :
       {std::string("{"), evaluation("AAA"), evaluation("*AAA"), evaluation("AAAA"),
        std::string(R"({"classes":[],"worst":[{"label":1,"predicted":0,"confidence":1}]})")}) {
    test::write_bytes(path, text);
    CHECK_THAT(test::error_of([&] { events.write_evaluation(path, 1); }),
               ContainsText(path + ": not a sound evaluation: "));
  }
}

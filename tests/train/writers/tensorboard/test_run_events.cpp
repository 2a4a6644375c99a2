// The images of an evaluation as events.
#include "tandem/train/writers/tensorboard/run_events.h"

#include "tests/support/catch.h"
#include "tests/support/error_of.h"
#include "tests/support/temporary_directory.h"

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

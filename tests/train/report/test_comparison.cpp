// Runs held against each other: groups, names, and tables of their results.
#include "tandem/train/report/comparison.h"

#include "tests/support/catch.h"
#include "tests/train/report/run_files.h"

#include "tandem/core/error.h"
#include "tandem/train/progress_format.h"
#include "tandem/train/report/report.h"

#include <cmath>
#include <filesystem>

using namespace tandem::train;
using tandem::test::ContainsText;
using tandem::test::four_epochs;
using tandem::test::has;
using tandem::test::read_bytes;
using tandem::test::RunFiles;
using tandem::test::TemporaryDirectory;
using tandem::test::write_bytes;

namespace {

/// A run in a folder of its own, read again.
report::RunData written_run(const TemporaryDirectory& folder, const std::string& name, const RunFiles& files) {
  std::filesystem::create_directory(folder / name);
  write_bytes(folder / (name + "/log.jsonl"), files.text());
  return report::read_run(folder / name);
}

}  // namespace

TEST_CASE("report: runs that differ by their seed are pooled, others are told apart by what differs") {
  const TemporaryDirectory folder;
  std::vector<report::RunData> runs;
  const auto add = [&](const std::string& name, const RunFiles& files) {
    runs.push_back(written_run(folder, name, files));
  };
  add("a", four_epochs("cifar10", 1, 0.1, 84.0));
  add("b", four_epochs("cifar10", 2, 0.1, 86.0));
  add("c", four_epochs("cifar10", 1, 0.2, 80.0));
  const auto groups = report::group_runs(runs);
  REQUIRE(groups.size() == 2);
  CHECK((groups[0].runs.size() == 2 && groups[0].name == "lr 0.1" && groups[1].name == "lr 0.2"));
  CHECK(report::differing_settings(groups) == std::vector<std::string>{"lr"});
  const std::string text = write_comparison({folder / "a", folder / "b", folder / "c"}, folder / "compare.html");
  INFO(text);
  CHECK(text.starts_with(
      "        Runs   Test accuracy  Test loss  Training loss  Epochs  Images/s\nlr 0.1     2  85.00 % "));
  CHECK_THAT(text, ContainsText("\nlr 0.2     1         80.00 %        0.6           0.59       4       200\n"));
  const std::string page = read_bytes(folder / "compare.html");
  CHECK_THAT(page, ContainsText("3 runs compared"));
  CHECK_THAT(page, ContainsText("85.00 % \xC2\xB1 1.41"));
  CHECK_THAT(page, ContainsText("fill-opacity=\"0.15\""));
  CHECK(!has(page, "http:"));
}

TEST_CASE("report: a test that was done once, at the end, is compared, and is a point in the curves") {
  const TemporaryDirectory folder;
  const auto write = [&](const std::string& name, int seed, double accuracy) {
    RunFiles files("cifar10", 3, seed);
    for (int epoch = 1; epoch <= 3; ++epoch)
      files.add(fmt::format(R"({{"record":"epoch","epoch":{},"train_loss":{},"train_accuracy":50.0,)"
                            R"("validation_loss":1.5,"validation_accuracy":45.0}})",
                            epoch, 2.0 - 0.1 * epoch));
    files.add(fmt::format(
        R"({{"record":"result","epoch":3,"test_loss":1.25,"test_accuracy":{},"validation_loss":1.5,"total_seconds":9}})",
        accuracy));
    std::filesystem::create_directory(folder / name);
    write_bytes(folder / (name + "/log.jsonl"), files.text());
  };
  write("a", 1, 40.0);
  write("b", 2, 44.0);
  const std::string text = write_comparison({folder / "a", folder / "b"}, folder / "compare.html");
  CHECK_THAT(text, ContainsText("Test accuracy") && ContainsText("42.00 % \xC2\xB1 2.83") && ContainsText("1.25 "));
  CHECK_THAT(read_bytes(folder / "compare.html"), ContainsText(">Test accuracy</h3>"));
  const report::RunData run = report::read_run(folder / "a");
  CHECK(
      (std::isnan(run.epochs[1].test_loss) && run.epochs[2].test_loss == 1.25 && run.epochs[2].test_accuracy == 40.0));
  CHECK(report::held_out(run).name == "validation");
  const std::string page = read_bytes(write_report(folder / "a").page);
  CHECK_THAT(page, ContainsText(">test</text>") && ContainsText("<circle") && ContainsText(">40.00 %</b>"));
}

TEST_CASE("report: long names of compared runs show what they differ by, on the page and on a terminal") {
  const TemporaryDirectory folder;
  const std::string begin = "a-run-with-a-name-that-is-much-too-long-for-all-charts-", end = "-and-this-is-its-end";
  std::vector<std::string> folders;
  for (const char* const lr : {"0.01", "0.02", "0.03"}) {
    const std::string more = fmt::format(R"("momentum":{0},"weight-decay":{0},)", lr);
    written_run(folder, begin + lr + end, four_epochs("cifar10", 1, std::stod(lr), 80.0, more));
    folders.push_back(folder / (begin + lr + end));
  }
  const std::string text = write_comparison(folders, folder / "compare.html", 80);
  const std::string page = read_bytes(folder / "compare.html");
  for (const char* const lr : {"0.01", "0.02", "0.03"}) {
    CHECK_THAT(text, ContainsText(fmt::format("\n\xE2\x80\xA6"
                                              "charts-{}\xE2\x80\xA6 ",
                                              lr)));
    CHECK_THAT(page, ContainsText(fmt::format(">\xE2\x80\xA6"
                                              "charts-{}\xE2\x80\xA6</text>",
                                              lr)));
    CHECK_THAT(page, ContainsText(begin + lr + end));  // its table has all of them
  }
  CHECK_THAT(write_comparison(folders, folder / "compare.html"), ContainsText(begin + "0.02" + end));
}

TEST_CASE("report: a table fits in a terminal of 80 columns") {
  const TemporaryDirectory folder;
  std::vector<std::string> folders;
  const auto add = [&](const std::string& name, const RunFiles& files) {
    written_run(folder, name, files);
    folders.push_back(folder / name);
  };
  const auto widest = [&](int columns) {
    std::size_t most = 0;
    const std::string text = write_comparison(folders, folder / "compare.html", columns);
    INFO(text);
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t line = text.find('\n', at);
      most = std::max(most, static_cast<std::size_t>(display_width(text.substr(at, line - at))));
      at = line + 1;
    }
    return most;
  };
  add("baseline-of-the-large-network-with-augmentation", four_epochs());
  add("large-network-without-augmentation", four_epochs("cifar10", 1, 0.2, 83.0, R"("x":1,"y":2,)"));
  CHECK(widest(0) > 80);
  CHECK(widest(80) <= 80);
  add("baseline-with-another-seed", four_epochs("cifar10", 2, 0.1, 86.0));  // a mean, and its deviation
  CHECK(widest(80) <= 80);
  CHECK(widest(60) <= 60);
  CHECK(widest(1) < 60);  // cannot be, and ends
}

TEST_CASE("report: runs whose folders have the same name are told apart by those around them") {
  const TemporaryDirectory folder;
  std::vector<report::RunData> runs;
  for (const char* const name : {"first", "second"}) {
    std::filesystem::create_directory(folder / name);
    const std::string more = fmt::format(R"("x":"{0}","y":"{0}",)", name);
    runs.push_back(written_run(folder, std::string(name) + "/run", four_epochs("cifar10", 1, 0.1, 80.0, more)));
    runs.back().config.emplace_back("z", name);
  }
  const auto groups = report::group_runs(runs);
  CHECK((groups[0].name == "first/run" && groups[1].name == "second/run"));
}

TEST_CASE("report: runs that were tested on different images say so") {
  const TemporaryDirectory folder;
  const auto write = [&](const std::string& name, const std::string& dataset, const char* images) {
    std::string log = four_epochs(dataset).text();
    log.replace(log.find("\"test_images\":100"), 17, fmt::format("\"test_images\":{}", images));
    std::filesystem::create_directory(folder / name);
    write_bytes(folder / (name + "/log.jsonl"), log);
  };
  write("a", "cifar10", "100");
  write("b", "cifar10", "100");
  write("c", "cifar10", "50");
  write("d", "mnist", "100");
  const auto compared = [&](const std::vector<std::string>& names) {
    std::vector<std::string> folders;
    for (const std::string& name : names) folders.push_back(folder / name);
    const std::string text = write_comparison(folders, folder / "compare.html");
    CHECK(has(text, "not tested on the same") == has(read_bytes(folder / "compare.html"), "not tested on the same"));
    return text;
  };
  CHECK(!has(compared({"a", "b"}), "not tested on the same"));
  CHECK_THAT(compared({"a", "d"}), ContainsText("dataset cifar10 on 100 images of cifar10") &&
                                       ContainsText("dataset mnist on 100 images of mnist."));
  CHECK_THAT(compared({"a", "c"}), ContainsText("50 images of cifar10"));
}

TEST_CASE("report: runs that held out different images for validation say so") {
  const TemporaryDirectory folder;
  const auto write = [&](const std::string& name, int seed, double lr, const char* images) {
    std::string log = four_epochs("cifar10", seed, lr).text();
    log.replace(log.find("\"test_images\":100"), 17,
                fmt::format("\"test_images\":100,\"validation_images\":{}", images));
    std::filesystem::create_directory(folder / name);
    write_bytes(folder / (name + "/log.jsonl"), log);
  };
  write("a1", 1, 0.1, "40");
  write("a2", 2, 0.1, "40");
  write("b1", 1, 0.2, "40");
  write("b2", 2, 0.2, "40");
  write("more", 1, 0.3, "80");
  write("none", 1, 0.4, "0");
  const auto compared = [&](const std::vector<std::string>& names) {
    std::vector<std::string> folders;
    for (const std::string& name : names) folders.push_back(folder / name);
    const std::string text = write_comparison(folders, folder / "compare.html");
    CHECK(has(text, "not validated on the same") ==
          has(read_bytes(folder / "compare.html"), "not validated on the same"));
    return text;
  };
  CHECK(!has(compared({"a1", "b1", "none"}), "not validated on the same"));
  CHECK(!has(compared({"a1", "a2", "b2", "b1"}), "not validated on the same"));
  CHECK(!has(compared({"a1", "a2"}), "not validated on the same"));  // means over seeds are of several splits
  CHECK_THAT(
      compared({"a1", "b2"}),
      ContainsText("note: These runs were not validated on the same images, so that their validation figures cannot be "
                   "compared: lr 0.1 on 40 of 540 images of cifar10 by seed 1; lr 0.2 on 40 of 540 images of "
                   "cifar10 by seed 2.\n"));
  CHECK_THAT(compared({"a1", "b1", "more"}),
             ContainsText("lr 0.3 on 80 of 580 images of cifar10 by seed 1; the others on 40 of"));
  CHECK_THAT(compared({"a1", "a2", "b1"}),
             ContainsText("lr 0.1 on 40 of 540 images of cifar10 by seed 1 and 40 of 540"));
}

TEST_CASE("report: a name of 200 characters leaves its figures where they can be seen") {
  const TemporaryDirectory folder;
  std::vector<std::string> folders;
  for (const char* const end : {"a", "b"}) {
    const std::string name = std::string(199, 'x') + end;
    written_run(folder, name,
                four_epochs("cifar10", 1, 0.1, 80.0, fmt::format(R"("x":"{0}","y":"{0}","z":"{0}",)", end)));
    folders.push_back(folder / name);
  }
  const std::string text = write_comparison(folders, folder / "compare.html", 80);
  INFO(text);
  for (std::size_t at = 0, end = 0; (end = text.find('\n', at)) != text.npos; at = end + 1)
    CHECK(display_width(text.substr(at, end - at)) <= 80);
  CHECK_THAT(text, ContainsText("xxx\xE2\x80\xA6xxx") && ContainsText("80.00 %"));
  CHECK_THAT(read_bytes(folder / "compare.html"),
             ContainsText("<td class=\"name\">") && ContainsText(std::string(199, 'x') + "b"));
}

TEST_CASE("report: a folder counts once, and so does a seed") {
  const TemporaryDirectory folder;
  const auto write = [&](const std::string& name, int seed, double accuracy) {
    std::filesystem::create_directory(folder / name);
    write_bytes(folder / (name + "/log.jsonl"), four_epochs("cifar10", seed, 0.1, accuracy).text());
  };
  write("a", 1, 80.0);
  write("b", 2, 84.0);
  write("c", 1, 80.5);
  const auto compared = [&](const std::vector<std::string>& names) {
    std::vector<std::string> folders;
    for (const std::string& name : names) folders.push_back(folder / name);
    return write_comparison(folders, folder / "compare.html");
  };
  CHECK_THAT(compared({"a", "a/../a", "b"}), ContainsText("82.00 % \xC2\xB1 2.83") && !ContainsText("does not count"));
  CHECK_THAT(read_bytes(folder / "compare.html"), ContainsText("2 runs compared"));
  const std::string text = compared({"a", "b", "c"});
  CHECK_THAT(text, ContainsText("     2  82.00 % \xC2\xB1 2.83"));
  CHECK_THAT(text, ContainsText("/c has the settings and the seed (1) of ") && ContainsText("/a: it does not count"));
  const std::string page = read_bytes(folder / "compare.html");
  CHECK_THAT(page,
             ContainsText("it does not count among runs of several seeds.") && ContainsText("/c (not finished)</b>"));
  CHECK_THAT(compared({"a", "c"}), ContainsText("     1        80.00 %") && !ContainsText("\xC2\xB1"));
}

TEST_CASE("report: settings without effect on the result keep no seeds apart") {
  const TemporaryDirectory folder;
  std::vector<report::RunData> runs;
  const auto add = [&](const std::string& name, const RunFiles& files) {
    runs.push_back(written_run(folder, name, files));
  };
  add("a", four_epochs("cifar10", 1, 0.1, 84.0, R"("log-norms":true,"keep":3,)"));
  add("b", four_epochs("cifar10", 2, 0.1, 86.0));
  CHECK(report::group_runs(runs).size() == 1);
  add("c", four_epochs("cifar10", 3, 0.1, 85.0, R"("unknown":true,)"));
  const auto groups = report::group_runs(runs);
  CHECK((groups.size() == 2 && report::differing_settings(groups) == std::vector<std::string>{"unknown"}));
  runs[0].without_effect.emplace_back("unknown");  // a later program knows more
  CHECK(report::group_runs(runs).size() == 1);
}

TEST_CASE("report: means and deviations leave out what is missing") {
  const report::Spread spread = report::spread_of({1.0, std::nan(""), 3.0});
  CHECK((spread.count == 2 && spread.mean == 2.0));
  CHECK(spread.deviation == Approx(std::sqrt(2.0)));
  CHECK((report::spread_of({5.0}).deviation == 0.0 && report::spread_of({}).count == 0));
  const report::Spread same = report::spread_of({0.055, 0.055, 0.055, 0.055, 0.055});  // whose sum is rounded
  CHECK((same.mean == 0.055 && same.deviation == 0.0 && same.count == 5));
}

TEST_CASE("report: runs on one rank and on more have their speed-up beside each other") {
  const TemporaryDirectory folder;
  const auto add = [&](const std::string& name, int ranks, double images_per_second) {
    RunFiles files;
    files.add(fmt::format(R"({{"record":"epoch","epoch":1,"train_loss":1.0,"train_accuracy":50,)"
                          R"("images_per_second":{}}})",
                          images_per_second));
    std::string text = files.text();
    text.replace(text.find("\"world_size\":2"), 14, fmt::format("\"world_size\":{}", ranks));
    std::filesystem::create_directory(folder / name);
    write_bytes(folder / (name + "/log.jsonl"), text);
    return folder / name;
  };
  const std::string one = add("one", 1, 100.0), two = add("two", 2, 190.0), four = add("four", 4, 300.0);
  const std::string text = write_comparison({two, one, four}, folder / "compare.html");
  INFO(text);
  CHECK_THAT(text, ContainsText("Images/s  Speed-up\nranks 2") && ContainsText("190    1.90 x\nranks 1") &&
                       ContainsText("100    1.00 x\nranks 4") && ContainsText("300    3.00 x\n"));
  CHECK_THAT(read_bytes(folder / "compare.html"), ContainsText(">Speed-up</th>"));
  CHECK(!has(write_comparison({two, four}, folder / "compare.html"), "Speed-up"));
  // Of another network, one rank says nothing.
  const std::string other = folder / "other";
  std::filesystem::create_directory(other);
  std::string text_of_other = read_bytes(one + "/log.jsonl");
  text_of_other.replace(text_of_other.find("small_cnn"), 9, "mnist_cnn");
  write_bytes(other + "/log.jsonl", text_of_other);
  CHECK(!has(write_comparison({other, two, four}, folder / "compare.html"), "Speed-up"));
  const std::string mixed = write_comparison({other, two, one}, folder / "compare.html");
  CHECK_THAT(mixed, ContainsText("1.90 x") && ContainsText("1.00 x"));
  // A page that cannot be written does not keep the table back.
  std::string problem;
  CHECK_THAT(write_comparison({two, one}, folder / "none/compare.html", 0, &problem), ContainsText("1.90 x"));
  CHECK_THAT(problem, ContainsText("none/compare.html"));
  CHECK_THROWS_AS(write_comparison({two, one}, folder / "none/compare.html"), tandem::Error);
  // In a narrow window what it is about stays, and figures go.
  const std::string narrow = write_comparison({two, one}, folder / "compare.html", 44);
  CHECK_THAT(narrow, ContainsText("Speed-up") && ContainsText("1.90 x"));
}

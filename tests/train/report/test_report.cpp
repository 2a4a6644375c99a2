// The pages: what is in them, what is left out, and that nothing of a file becomes markup.
#include "tandem/train/report/report.h"

#include "tests/support/catch.h"
#include "tests/train/report/run_files.h"

#include "tandem/core/error.h"
#include "tandem/train/plot/png.h"
#include "tandem/train/report/comparison.h"
#include "tandem/train/report/html_writer.h"

#include <cmath>
#include <filesystem>

using namespace tandem::train;
using tandem::test::ContainsText;
using tandem::test::evaluation_json;
using tandem::test::read_bytes;
using tandem::test::RunFiles;
using tandem::test::TemporaryDirectory;
using tandem::test::write_bytes;

namespace {

RunFiles four_epochs(const std::string& dataset = "cifar10", int seed = 1, double lr = 0.1, double accuracy = 85.0,
                     const std::string& more = "") {
  return RunFiles(dataset, 4, seed, lr, more)
      .epoch(1, 2.0, 30, 1.8, 35)
      .epoch(2, 1.5, 45, 1.4, 50)
      .epoch(3, 0.6, 84, 0.61, 83)
      .epoch(4, 0.59, 86, 0.60, accuracy);
}

std::string page_of(const TemporaryDirectory& folder) { return read_bytes(write_report(folder.path().string()).page); }

/// A run in a folder of its own, read again.
report::RunData written_run(const TemporaryDirectory& folder, const std::string& name, const RunFiles& files) {
  std::filesystem::create_directory(folder / name);
  write_bytes(folder / (name + "/log.jsonl"), files.text());
  return report::read_run(folder / name);
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("report: a page has all parts whose figures are there") {
  const TemporaryDirectory folder;
  four_epochs().result(4).write(folder);
  write_bytes(folder / "evaluation.json", evaluation_json("cat", "dog"));
  write_bytes(folder / "environment.json", R"({"git":"888c209","command_line":"cifar_train --epochs 4"})");
  const std::string page = page_of(folder);
  for (const char* const part :
       {"small_cnn on cifar10", "85.00 %", "A good fit", ">Loss</h3>", ">Accuracy</h3>", ">Learning rate</h3>",
        "Confusion matrix", "Accuracy by class", "Calibration: expected error 5.00 points", "Most frequent mistakes",
        "data:image/png;base64,iVBOR", "Time of each epoch", "Memory of tensors", "Communication",
        "cifar_train --epochs 4", "888c209", "All settings", "prefers-color-scheme: dark", "@media print"}) {
    CHECK_THAT(page, ContainsText(part));
  }
  CHECK(!has(page, "This run is not finished"));
  CHECK(!has(page, "http:"));
  CHECK(!has(page, "https:"));
  CHECK(!has(page, "<script"));
  CHECK(page.size() < 2'000'000);
  CHECK(page == page_of(folder));
}

TEST_CASE("report: parts whose figures are missing are left out") {
  const TemporaryDirectory folder;
  RunFiles("cifar10").add(R"({"record":"epoch","epoch":1,"train_loss":2.0,"train_accuracy":30.0})").write(folder);
  const std::string page = page_of(folder);
  CHECK_THAT(page, ContainsText("This run is not finished: its log ends behind epoch 1 of 10"));
  for (const char* const part : {"Confusion", "Worst", "filters", "Memory", "Time of", "Communication", "Command line",
                                 "Images per second", "test accuracy", "Calibration"}) {
    INFO(part);
    CHECK(!has(page, std::string(part) + "<"));
    CHECK(!has(page, std::string(">") + part));
  }
}

TEST_CASE("report: a run that has only begun has a page, too") {
  const TemporaryDirectory folder;
  write_bytes(folder / "config.toml", "lr = 0.1  # <b>\n");
  const std::string page = page_of(folder);
  CHECK_THAT(page, ContainsText("has not finished an epoch"));
  CHECK_THAT(page, ContainsText("lr = 0.1  # &lt;b&gt;"));
}

TEST_CASE("report: names in files never become markup") {
  const TemporaryDirectory folder;
  const std::string evil = "<script>alert(1)</script>'><img src=x onerror=y>";
  four_epochs(evil).result(4).write(folder);
  write_bytes(folder / "evaluation.json", evaluation_json(evil, "</svg></style>" + evil));
  write_bytes(folder / "environment.json", R"({"<script>":"<script>","command_line":["<script>"]})");
  const std::string page = page_of(folder) + read_bytes(folder / "curves.svg");
  CHECK(!has(page, "<script"));
  CHECK(!has(page, "<img src=x"));
  CHECK_THAT(page, ContainsText("&lt;script&gt;alert(1)&lt;/script&gt;"));
}

TEST_CASE("report: curves as files") {
  const TemporaryDirectory folder;
  four_epochs().write(folder);
  const ReportFiles files = write_report(folder.path().string());
  CHECK_THAT(read_bytes(files.svg), ContainsText("xmlns=\"http://www.w3.org/2000/svg\""));
  CHECK(files.png.empty() == !plot::has_png_pictures());
  if (!files.png.empty()) CHECK(read_bytes(files.png).starts_with("\x89PNG"));
  CHECK(folder.entries() == (files.png.empty() ? 3 : 4));  // with the log, and nothing temporary
}

TEST_CASE("report: images that are too large for a page are counted") {
  const TemporaryDirectory folder;
  four_epochs().write(folder);
  std::string worst;
  for (int i = 0; i < 6; ++i) {
    worst += fmt::format(R"({}{{"index":{},"label":0,"predicted":0,"confidence":0.5,"loss":1.0,"png":"iVBORw0KGg{}"}})",
                         i == 0 ? "" : ",", i, std::string(300'000, 'A'));
  }
  write_bytes(folder / "evaluation.json", R"({"classes":["a"],"worst":[)" + worst + "]}");
  const std::string page = page_of(folder);
  CHECK(page.size() < 2'000'000);
  CHECK_THAT(page, ContainsText("2 more are too large for this page"));
}

TEST_CASE("report: two hundred classes keep the page small") {
  const TemporaryDirectory folder;
  four_epochs().write(folder);
  std::string classes, rows;
  for (int i = 0; i < 200; ++i) {
    classes += fmt::format("{}\"class {}\"", i == 0 ? "" : ",", i);
    std::string row;
    for (int k = 0; k < 200; ++k) row += fmt::format("{}{}", k == 0 ? "" : ",", 1 + (i * k) % 7);
    rows += (i == 0 ? "[" : ",[") + row + "]";
  }
  write_bytes(folder / "evaluation.json", fmt::format(R"({{"classes":[{}],"confusion":[{}]}})", classes, rows));
  const std::string page = page_of(folder);
  CHECK_THAT(page, ContainsText("Confusion matrix"));
  CHECK(page.size() < 2'000'000);
}

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

TEST_CASE("report: norms of layers, the exchange of gradients and a profile have their parts") {
  const TemporaryDirectory folder;
  four_epochs()
      .add(R"({"record":"epoch","epoch":5,"train_loss":0.5,"time":{"forward":1.0,"communication":0.3},)"
           R"("exchange":{"steps":10,"bytes":20480,"seconds":0.5,"waited_seconds":0.02},)"
           R"("layers":[{"name":"conv<1>","gradient_norm":0.5,"update_norm":0.01,"weight_norm":4.0}]})")
      .write(folder);
  const std::string without = page_of(folder);
  CHECK(!has(without, "<h2>Profile"));
  for (const char* const part : {"<h2>Layers", ">Norm of the gradient</h3>", "conv&lt;1&gt;", ">2.00 ms</b>",
                                 ">2 KiB</b>", ">40 KiB/s</b>", ">Exchange of gradients, ms per step</h3>"})
    CHECK_THAT(without, ContainsText(part));
  const std::string ops = R"({"steps":2,"flops_per_second":8e9,"seconds":0.008,"ops":[{"name":"conv<3>","calls":4,)"
                          R"("seconds":0.006,"flops":12e6,"bytes":0}],"peak_bytes":3145728,)"
                          R"("largest_at_peak":[{"bytes":1048576,"kind":"activations","made_in":""},{"bytes":4096,)"
                          R"("kind":"optimizer","made_in":"","name":"optimizer.9.<b>"},{"bytes":64,"kind":"gradients",)"
                          R"("made_in":"backward","name":"a.grad"}],)";
  write_bytes(folder / "profile.json", ops + R"("memory":{"seconds":[0,0.001],"bytes":{"activations":[1024,2048]}}})");
  const std::string page = page_of(folder);
  for (const char* const part :
       {"Profile of 2 steps, rank 0", "conv&lt;3&gt;", ">3.000</td>", ">75.0 %</td>", ">2.0 (25 %)</td>",
        ">Memory over time</h3>", "at the peak of 3 MiB", "outside of any operation", "<td>optimizer.9.&lt;b&gt;</td>",
        "<td>a.grad, backward</td>"})
    CHECK_THAT(page, ContainsText(part));
  write_bytes(folder / "profile.json", ops + R"("memory":{"seconds":[0,0.001],"bytes":{"activations":[1024]}}})");
  CHECK_THAT(page_of(folder),
             ContainsText("profile.json: &#39;memory.bytes.activations&#39; has not one number for each time"));
}

TEST_CASE("report: lists in environment.json are told in words") {
  const TemporaryDirectory folder;
  four_epochs().write(folder);
  write_bytes(
      folder / "environment.json",
      R"({"host":"told above","ranks":["vm, cpu","vm, gpu"],"devices":[{"name":"EPYC","memory_bytes":2147483648}]})");
  const std::string page = page_of(folder);
  for (const char* const part : {"<span>ranks.1</span>\n<b>vm, gpu</b>", "<span>devices.name</span>\n<b>EPYC</b>",
                                 "<span>devices.memory_bytes</span>\n<b>2 GiB</b>"})
    CHECK_THAT(page, ContainsText(part));
  CHECK(!has(page, "told above"));
}

TEST_CASE("report: means and deviations leave out what is missing") {
  const report::Spread spread = report::spread_of({1.0, std::nan(""), 3.0});
  CHECK((spread.count == 2 && spread.mean == 2.0));
  CHECK(spread.deviation == Approx(std::sqrt(2.0)));
  CHECK((report::spread_of({5.0}).deviation == 0.0 && report::spread_of({}).count == 0));
}

TEST_CASE("report: elements are closed, attributes escaped") {
  report::HtmlWriter html;
  html.open("p", {{"title", "a\"b"}});
  CHECK_THROWS_AS(html.take(), tandem::Error);
  html.close();
  CHECK_THROWS_AS(html.close(), tandem::Error);
  CHECK_THAT(html.take(), ContainsText("<p title=\"a&quot;b\"></p>"));
}

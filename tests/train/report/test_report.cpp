// The pages: what is in them, what is left out, and that nothing of a file becomes markup.
#include "tandem/train/report/report.h"

#include "tests/support/catch.h"
#include "tests/train/report/run_files.h"

#include "tandem/core/error.h"
#include "tandem/train/plot/png.h"
#include "tandem/train/report/html_writer.h"

#include <filesystem>

using namespace tandem::train;
using tandem::test::ContainsText;
using tandem::test::evaluation_json;
using tandem::test::four_epochs;
using tandem::test::has;
using tandem::test::read_bytes;
using tandem::test::RunFiles;
using tandem::test::TemporaryDirectory;
using tandem::test::write_bytes;

namespace {

std::string page_of(const TemporaryDirectory& folder) { return read_bytes(write_report(folder.path().string()).page); }

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

TEST_CASE("report: a chart over epochs takes two of them, one over steps two steps") {
  const TemporaryDirectory folder;
  RunFiles run("cifar10", 1);
  run.epoch(1, 2.0, 30, 1.8, 35).write(folder);
  const auto charts = [&] {
    const std::string page = page_of(folder);
    CHECK_THAT(page, ContainsText(">Loss</h3>") && ContainsText(">Accuracy</h3>"));
    CHECK(!has(page, ">Images per second, all ranks</h3>"));
    return has(page, ">Learning rate</h3>");
  };
  CHECK(!charts());
  run.add(R"({"record":"step","step":5,"lr":0.1,"loss":2.0})").write(folder);
  CHECK(!charts());
  run.add(R"({"record":"step","step":10,"lr":0.05,"loss":1.9})").write(folder);
  CHECK(charts());
}

TEST_CASE("report: the command line of a run on several ranks has what starts them") {
  const TemporaryDirectory folder;
  const auto command = [&](const std::string& backend, const std::string& environment) {
    std::string log = four_epochs().text();
    log.replace(log.find("native"), 6, backend);
    write_bytes(folder / "log.jsonl", log);
    write_bytes(folder / "environment.json", environment);
    const std::string page = page_of(folder);
    CHECK(!has(page, "<span>launcher</span>"));
    const std::size_t begin = page.find("<pre>") + 5;
    return page.substr(begin, page.find("</pre>") - begin);
  };
  const std::string argv = R"("command":["./cifar_train","--lr","0.1"])";
  CHECK(command("native", "{" + argv + R"(,"launcher":"mpirun"})") == "mpirun -np 2 ./cifar_train --lr 0.1");
  CHECK(command("native", "{" + argv + R"(,"launcher":"srun"})") == "srun -n 2 ./cifar_train --lr 0.1");
  CHECK(command("nccl", "{" + argv + "}") == "mpirun -np 2 ./cifar_train --lr 0.1");  // of an earlier version
  CHECK(command("threads", "{" + argv + "}") == "./cifar_train --lr 0.1");            // by --replicas, which it has
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

TEST_CASE("report: norms of layers, the exchange of gradients and a profile have their parts") {
  const TemporaryDirectory folder;
  four_epochs()
      .add(R"({"record":"epoch","epoch":5,"train_loss":0.5,"time":{"forward":1.0,"communication":0.3},)"
           R"("exchange":{"steps":10,"bytes":20480,"seconds":0.5,"waited_seconds":0.02},)"
           R"("layers":[{"name":"conv<1>","gradient_norm":0.5,"update_norm":0.01,"weight_norm":4.0}],)"
           R"("relus":[{"name":"relu<2>","channels":8,"dead":3},{"name":"none","channels":0,"dead":0},)"
           R"({"name":"more","channels":8,"dead":9},{"name":"less","channels":8,"dead":-1},{"name":"half"},7]})")
      .write(folder);
  const std::string without = page_of(folder);
  CHECK(!has(without, "<h2>Profile"));
  for (const char* const damaged : {">none<", ">more<", ">less<", ">half<"}) CHECK(!has(without, damaged));
  for (const char* const part :
       {"<h2>Layers", ">Norm of the gradient</h3>", "conv&lt;1&gt;", "relu&lt;2&gt;", ">Dead channels of ReLUs</h3>",
        ">2.00 ms</b>", ">2 KiB</b>", ">40 KiB/s</b>", ">Exchange of gradients, ms per step</h3>"})
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
        "<td>a.grad, backward</td>", "of what the machine was measured to be able to do."})
    CHECK_THAT(page, ContainsText(part));
  CHECK(!has(page, "Kernels and copies"));
  const std::string memory = R"("memory":{"seconds":[0,0.001],"bytes":{"activations":[1024,2048]}}})";
  const std::string of_gpu = R"("device_times_from":"CUPTI <13>","kernels":[{"name":"tile<4>","calls":8,)"
                             R"("seconds":0.004,"bytes":0}],)";
  write_bytes(folder / "profile.json", ops + of_gpu + memory);
  const std::string with_kernels = page_of(folder);
  for (const char* const part : {"Times of the GPU are from CUPTI &lt;13&gt;.", "which was not measured",
                                 "Kernels and copies with the most time", ">tile&lt;4&gt;</td>", ">50.0 %</td>"})
    CHECK_THAT(with_kernels, ContainsText(part));
  CHECK(!has(with_kernels, "machine was measured"));
  write_bytes(folder / "profile.json", ops + R"("memory":{"seconds":[0,0.001],"bytes":{"activations":[1024]}}})");
  CHECK_THAT(page_of(folder),
             ContainsText("profile.json: &#39;memory.bytes.activations&#39; has not one number for each time"));
}

TEST_CASE("report: what is predicted of more ranks has its part, and damage in it is left out") {
  const TemporaryDirectory folder;
  const auto with = [&](const std::string& scaling) {
    RunFiles files = four_epochs();
    files.add(R"({"record":"result","epoch":4,"total_seconds":9.0,"scaling":)" + scaling + "}");
    files.write(folder);
    return page_of(folder);
  };
  const std::string steps = R"({"step_seconds":0.01,"window_seconds":0.006,"usual_costs":)",
                    costs = R"(,"latency_seconds":2.5e-05,"bytes_per_second":1073741824.0,"predicted":[)",
                    one = R"({"ranks":1,"exchange_seconds":0,"waited_seconds":0,"speed_up":1})",
                    two = R"({"ranks":2,"exchange_seconds":0.002,"waited_seconds":0.0005,"speed_up":1.9048})";
  const std::string page = with(steps + "true" + costs + one + "," + two + "]}");
  for (const char* const part : {"<h2>More ranks, predicted", ">1.9 x</td>", ">2 ms</td>", "not measured",
                                 "a message takes 25", ">nothing waited for</text>"})
    CHECK_THAT(page, ContainsText(part));
  CHECK_THAT(with(steps + "false" + costs + one + "," + two + "]}"), ContainsText("goes at 1.1 GB/s: measured."));
  CHECK_THAT(with(steps + R"(false,"simulated":true)" + costs + one + "," + two + "]}"),
             ContainsText("goes at 1.1 GB/s: of the network that was simulated."));
  for (const std::string& damaged : std::vector<std::string>{
           std::string("7"), R"({"predicted":7})", R"({"predicted":[]})", steps + "true" + costs + one + "]}",
           steps + "true" + costs + R"({"ranks":2,"speed_up":-1},{"ranks":"x"},[])" + "]}"})
    CHECK(!has(with(damaged), "More ranks"));
}

TEST_CASE("report: elements are closed, attributes escaped") {
  report::HtmlWriter html;
  html.open("p", {{"title", "a\"b"}});
  CHECK_THROWS_AS(html.take(), tandem::Error);
  html.close();
  CHECK_THROWS_AS(html.close(), tandem::Error);
  CHECK_THAT(html.take(), ContainsText("<p title=\"a&quot;b\"></p>"));
}

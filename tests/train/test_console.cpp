// The lines people read.
#include "tandem/train/console.h"

#include "tandem/comm/ddp/exchange_totals.h"
#include "tests/support/catch.h"

#include <cmath>
#include <limits>

using namespace tandem::train;
using tandem::test::ContainsText;

namespace {

EpochRecord epoch(std::int64_t number) {
  EpochRecord e;
  e.epoch = number;
  e.train_loss = 0.91328;
  e.train_accuracy = 67.94;
  e.test_loss = 0.8949;
  e.test_accuracy = 68.88;
  e.seconds = 105;
  e.images_per_second = 2507;
  e.peak_memory_bytes = 312 << 20;
  return e;
}

}  // namespace

TEST_CASE("sizes for people") {
  CHECK(format_bytes(312 << 20) == "312 MiB");
  CHECK(format_bytes(std::int64_t{3} << 29) == "1.50 GiB");
}

TEST_CASE("the line of an epoch stays aligned and fits 80 columns") {
  CHECK(epoch_text(epoch(3), 8) == "epoch 3/8  loss 0.913 acc 67.9%  test loss 0.895 acc 68.9%  1:45  2.51k img/s");
  CHECK(epoch_text(epoch(3), 24).size() == epoch_text(epoch(24), 24).size());
  CHECK(epoch_text(epoch(24), 24).size() < 80);
  CHECK(epoch_text(epoch(24)) == "epoch 24  loss 0.913 acc 67.9%  test loss 0.895 acc 68.9%  1:45  2.51k img/s");
  EpochRecord diverged = epoch(3);
  diverged.train_loss = -std::numeric_limits<double>::quiet_NaN();
  diverged.test_loss = 4.115349257454476e+22;
  CHECK_THAT(epoch_text(diverged, 8), ContainsText("  loss   nan acc ") && ContainsText("test loss 4.12e+22 acc "));
  CHECK_THAT(summary_text({.last = diverged}, {}), ContainsText("(loss 4.12e+22)"));
}

TEST_CASE("an epoch's line leaves out what was not counted, and has the metrics of a program's own") {
  EpochRecord own = epoch(3);
  own.train_accuracy = own.test_accuracy = std::nan("");
  own.train_metrics = {{"error", 0.25}};
  own.test_metrics = {{"error", 1.0 / 3.0}};
  CHECK(epoch_text(own, 8) == "epoch 3/8  loss 0.913 error 0.25  test loss 0.895 error 0.3333  1:45  2.51k img/s");
  EpochRecord untested = epoch(3);
  untested.test_loss = untested.test_accuracy = std::nan("");
  CHECK_THAT(summary_text({.last = untested}, {}), ContainsText("training accuracy 67.9") && !ContainsText("nan"));
  CHECK_THAT(summary_text({.last = own}, {}), ContainsText("test loss 0.8949 after") && !ContainsText("nan"));
  CHECK(epoch_text(untested, 8) == "epoch 3/8  loss 0.913 acc 67.9%  1:45  2.51k img/s");
}

TEST_CASE("with a validation set an epoch's line has its figures, and the summary tells the best epoch") {
  EpochRecord held_out = epoch(3);
  held_out.validation_loss = 0.75;
  held_out.validation_accuracy = 71.5;
  held_out.best = {{"validation_accuracy", 2, 72.25}};
  EpochRecord during = held_out;
  during.test_loss = during.test_accuracy = std::nan("");
  CHECK(epoch_text(during, 8) == "epoch 3/8  loss 0.913 acc 67.9%  val loss 0.750 acc 71.5%  1:45  2.51k img/s");
  CHECK_THAT(summary_text({.last = held_out}, {}),
             ContainsText("test accuracy 68.88% (loss 0.8949) after 3 epochs") &&
                 ContainsText("  best     epoch 2 by validation_accuracy, 72.25%\n"));
  held_out.best = {{"validation_loss", 1, 0.5}};
  held_out.stopped_early = true;
  CHECK_THAT(summary_text({.last = held_out}, {}),
             ContainsText("  best     epoch 1 by validation_loss, 0.5000; stopped early: no better since\n"));
  CHECK_THAT(summary_text({.last = epoch(3)}, {}), !ContainsText("  best "));
}

TEST_CASE("the header names model, data, ranks and steps") {
  RunRecord run;
  run.host = "box";
  run.model = "small_cnn";
  run.model_parameters = 242474;
  run.dataset = "cifar10";
  run.train_images = 50000;
  run.test_images = 10000;
  run.world_size = 2;
  run.threads = 1;
  run.device = "cpu";
  run.backend = "native";
  run.global_batch_size = 128;
  run.steps_per_epoch = 391;
  run.config = {{"optimizer", std::string("sgd")}, {"lr", 0.1}, {"schedule", std::string("one-cycle")}};
  const std::string text = header_text(run);
  CHECK_THAT(text, ContainsText("small_cnn, 242,474 parameters"));
  CHECK_THAT(text, ContainsText("cifar10, 50,000 images for training, 10,000 for testing"));
  CHECK_THAT(text, ContainsText("2 x 1 thread on cpu, backend native\n"));
  CHECK_THAT(text, ContainsText("391 of 128 images per epoch; sgd, lr 0.1 (one-cycle)"));
  CHECK_THAT(text, !ContainsText("numbers"));
  run.all_reduce = "halving-doubling";
  CHECK_THAT(header_text(run), ContainsText("2 x 1 thread on cpu, backend native (halving-doubling)\n"));
  run.progress = "poll";
  CHECK_THAT(header_text(run), ContainsText("backend native (halving-doubling, polled)\n"));
  run.progress = "thread";
  CHECK_THAT(header_text(run), ContainsText("backend native (halving-doubling, progress thread)\n"));
  run.all_reduce.clear();
  CHECK_THAT(header_text(run), ContainsText("backend native (progress thread)\n"));
  CHECK_THAT(header_text(run), !ContainsText("network"));
  run.network = "alpha=2ms beta=1GB";
  CHECK_THAT(header_text(run), ContainsText("  network  simulated: alpha=2ms beta=1GB\n"));
  run.world_size = 1;  // which adds up nothing
  CHECK_THAT(header_text(run), ContainsText("1 x 1 thread on cpu, backend native\n"));
  run.world_size = 2;
  run.config.insert(run.config.end(), {{"precision", std::string("fp16")},
                                       {"loss-scale", std::string("dynamic")},
                                       {"master-weights", true},
                                       {"allreduce-dtype", std::string("half")}});
  CHECK_THAT(header_text(run), ContainsText("  numbers  fp16, f32 master weights, loss scale dynamic, gradients "
                                            "exchanged in half\n"));
}

TEST_CASE("the summary tells the result and where things are") {
  const ResultRecord result{epoch(1), 187.0};
  CHECK(summary_text(result, {.folder = "runs/a",
                              .lines = {{"settings", {"runs/a/config.toml", "runs/a/environment.json"}},
                                        {"log", {"elsewhere/log.jsonl"}},
                                        {"weights", {}}},
                              .report = "runs/a/report.html",
                              .picture = "runs/a/curves.png"}) ==
        "  memory   312 MiB per rank at most\n"
        "  kept in  runs/a\n"
        "  settings config.toml, environment.json\n"
        "  log      elsewhere/log.jsonl\n"
        "  report   runs/a/report.html\n"
        "test accuracy 68.88% (loss 0.8949) after 1 epoch in 3:07\n"
        "  curves   runs/a/curves.png\n");
  CHECK(summary_text(result, {}) ==
        "  memory   312 MiB per rank at most\n"
        "test accuracy 68.88% (loss 0.8949) after 1 epoch in 3:07\n");
  CHECK_THAT(summary_text(result, {.steps = 476}), ContainsText(" after 476 steps in 3:07\n"));
  CHECK(closing_text("stopped", {.folder = "runs/", .lines = {{"log", {"runs/log"}}}}) ==
        "  kept in  runs/\n  log      log\nstopped\n");
}

TEST_CASE("the summary of a run that was gone on with tells the time of all of it, or that it does not") {
  const ResultRecord result{epoch(1), 19.0};
  CHECK_THAT(summary_text(result, {.is_resumed = true, .seconds = 187.0}),
             ContainsText(" after 1 epoch in 3:07 in all\n"));
  CHECK_THAT(summary_text(result, {.is_resumed = true}), ContainsText(" after 1 epoch in 19s since resumed\n"));
}

TEST_CASE("the summary of several ranks tells what averaging gradients took") {
  ResultRecord result{epoch(1), 187.0};
  result.last.exchange =
      tandem::comm::ExchangeTotals{.steps = 4, .bytes = 4 << 20, .early_bytes = 3 << 20, .waited_seconds = 0.002};
  CHECK_THAT(summary_text(result, {}), !ContainsText("exchange"));  // of steps that were not timed
  result.last.time = PhaseTimes{
      .data = 0.01, .forward = 0.02, .backward = 0.03, .communication = 0.004, .optimizer = 0.016, .evaluation = 9.0};
  CHECK_THAT(summary_text(result, {}),
             ContainsText("  exchange 1.0 MiB a step, 75 % within backward; waited 0.50 of 20.00 ms\n"));
  result.last.exchange = tandem::comm::ExchangeTotals{.steps = 1};
  CHECK_THAT(summary_text(result, {}),
             ContainsText("  exchange 0 bytes a step, 0 % within backward; waited 0.00 of 80.00 ms\n"));
  result.last.exchange = tandem::comm::ExchangeTotals{};
  CHECK_THAT(summary_text(result, {}), !ContainsText("exchange"));
}

TEST_CASE("the summary tells skipped steps, and what memory went to") {
  ResultRecord result{epoch(1), 187.0, {{"parameters", 1 << 10}, {"activations", 3 << 20}}};
  result.last.skipped_steps = 2;
  result.last.loss_scale = 16384.0;
  const std::string text = summary_text(result, {});
  CHECK_THAT(text, ContainsText("  skipped  2 steps: a gradient was not finite; the loss scale ends at 16384\n"));
  CHECK_THAT(text, ContainsText("  tensors  activations 3.0 MiB, parameters 1.0 KiB\n"));
  result.peak_tensor_bytes = {{"a", 1 << 10}, {"b", 2 << 10}, {"c", 4 << 10}, {"d", 3 << 10}, {"e", 5 << 10}};
  CHECK_THAT(summary_text(result, {}), ContainsText("  tensors  e 5.0 KiB, c 4.0 KiB, d 3.0 KiB, 2 more\n"));
}

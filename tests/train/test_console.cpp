// The lines people read.
#include "train/console.h"

#include "tests/support/catch.h"

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
  run.backend = "ring";
  run.global_batch_size = 128;
  run.steps_per_epoch = 391;
  run.config = {{"optimizer", std::string("sgd")}, {"lr", 0.1}, {"schedule", std::string("one-cycle")}};
  const std::string text = header_text(run);
  CHECK_THAT(text, ContainsText("small_cnn, 242,474 parameters"));
  CHECK_THAT(text, ContainsText("cifar10, 50,000 images for training, 10,000 for testing"));
  CHECK_THAT(text, ContainsText("2 x 1 thread on cpu, backend ring"));
  CHECK_THAT(text, ContainsText("391 of 128 images per epoch; sgd, lr 0.1 (one-cycle)"));
}

TEST_CASE("the summary tells the result and where things are") {
  const ResultRecord result{epoch(1), 187.0};
  const std::string text = summary_text(result, {"run.jsonl", "w.safetensors"});
  CHECK_THAT(text, ContainsText("test accuracy 68.88% (loss 0.8949) after 1 epoch in 3:07, peak memory 312 MiB"));
  CHECK_THAT(text, ContainsText("log      run.jsonl"));
  CHECK_THAT(text, ContainsText("weights  w.safetensors"));
  CHECK_THAT(summary_text(result, {}), !ContainsText("weights"));
}

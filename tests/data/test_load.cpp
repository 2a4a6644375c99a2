// Data sets by name, and the synthetic one.
#include "tandem/data/load.h"

#include "tandem/core/parallel.h"
#include "tandem/data/synthetic.h"
#include "tests/data/files.h"
#include "tests/support/catch.h"
#include "tests/support/skip.h"

#include <algorithm>
#include <cmath>

using namespace tandem;
using namespace tandem::data;
using namespace tandem::test;

TEST_CASE("data sets are found by name; a wrong one names the nearest") {
  CHECK(dataset_names().size() == 5);
  const auto refusal = [](const DatasetRequest& request) { return error_of([&] { load_dataset(request); }); };
  CHECK_THAT(refusal({.name = "cifar1O"}), ContainsText("unknown data set 'cifar1O': did you mean cifar10?"));
  CHECK_THAT(refusal({.name = "imagenet"}), ContainsText("(choices: cifar10, cifar100, mnist"));
  CHECK_THAT(refusal({.name = "mnist", .limit = -3}), ContainsText("limit of -3"));
  const TemporaryFolder folder;
  for (const std::string name : {"cifar10", "cifar100", "mnist", "fashion-mnist"})
    CHECK_THAT(refusal({.name = name, .directory = folder.path()}), ContainsText("run tandem data " + name + ", or"));
}

TEST_CASE("synthetic images depend on seed, split and number only") {
  const auto pixels = [](const SyntheticOptions& options) {
    return make_synthetic(options).images.to_vector<std::int64_t>();
  };
  const SyntheticOptions options{.count = 200, .seed = 3};
  const auto whole = pixels(options);
  const int threads = num_threads();
  set_num_threads(1);
  CHECK(pixels(options) == whole);
  set_num_threads(threads);
  const auto start = pixels({.count = 20, .seed = 3});
  CHECK(std::equal(start.begin(), start.end(), whole.begin()));
  CHECK(pixels({.count = 200, .seed = 4}) != whole);
  CHECK(pixels({.count = 200, .seed = 3, .split = Split::test}) != whole);
}

TEST_CASE("synthetic classes are balanced, and their mean images do not tell them apart") {
  const ImageDataset dataset = load_dataset({.name = "synthetic", .limit = 2000, .seed = 1});
  check(dataset);
  CHECK(dataset.images.storage()->tag() == MemoryTag::data);
  const auto labels = dataset.labels.to_vector<std::int64_t>();
  for (std::int64_t c = 0; c < 10; ++c) CHECK(std::count(labels.begin(), labels.end(), c) == 200);

  const std::int64_t size = 3 * 32 * 32;
  const auto* bytes = dataset.images.data<std::uint8_t>();
  std::vector<double> means(static_cast<std::size_t>(10 * size));
  double sum = 0, squares = 0;
  for (std::int64_t i = 0; i < 2000; ++i)
    for (std::int64_t k = 0; k < size; ++k) {
      const double value = bytes[i * size + k] / 255.0;
      means[static_cast<std::size_t>(labels[static_cast<std::size_t>(i)] * size + k)] += value / 200;
      sum += value;
      squares += value * value;
    }
  const double mean = sum / static_cast<double>(2000 * size);
  CHECK(std::abs(mean - 0.5) < 0.01);
  CHECK(std::abs(std::sqrt(squares / static_cast<double>(2000 * size) - mean * mean) - 0.22) < 0.01);
  // A pixel deviates by 0.22, its mean over 200 images by 0.016: six deviations.
  for (const double value : means) REQUIRE(std::abs(value - 0.5) < 0.1);
}

TEST_CASE("synthetic images refuse sizes that make no sense") {
  CHECK_THROWS_AS(make_synthetic({.count = 0}), Error);
  CHECK_THROWS_AS(make_synthetic({.count = 2'000'000}), Error);
  CHECK_THROWS_AS(make_synthetic({.channels = 5}), Error);
  CHECK_THROWS_AS(make_synthetic({.side = 7}), Error);
}

TEST_CASE("Fashion-MNIST of the system's package has the published mean and deviation") {
  const std::filesystem::path folder = "/usr/share/datasets/fashion-mnist";
  if (!std::filesystem::exists(folder)) return skip_test("Debian's dataset-fashion-mnist is not installed");
  const ImageDataset dataset = load_dataset({.name = "fashion-mnist", .directory = folder});
  REQUIRE(dataset.images.shape() == Shape({60000, 1, 28, 28}));
  const auto* bytes = dataset.images.data<std::uint8_t>();
  std::int64_t sum = 0, squares = 0;
  const std::int64_t values = dataset.images.numel();
  for (std::int64_t i = 0; i < values; ++i) {
    sum += bytes[i];
    squares += std::int64_t{bytes[i]} * bytes[i];
  }
  const auto count = static_cast<double>(values);
  const double mean = static_cast<double>(sum) / count / 255;
  const double deviation = std::sqrt(static_cast<double>(squares) / count / 255 / 255 - mean * mean);
  CHECK(std::abs(mean - static_cast<double>(dataset.mean[0])) < 5e-5);
  CHECK(std::abs(deviation - static_cast<double>(dataset.deviation[0])) < 5e-5);
}

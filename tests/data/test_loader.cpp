// The loader: the same batches for any number of threads, and ranks that together see what one rank sees.
#include "tandem/data/loader.h"

#include "tandem/data/synthetic.h"
#include "tandem/kernels/augment/augment_images.h"
#include "tandem/kernels/cast/cast.h"
#include "tests/data/files.h"
#include "tests/support/catch.h"
#include "tests/support/cuda_device.h"
#include "tests/support/error_of.h"

#include <algorithm>
#include <chrono>

using namespace tandem;
using namespace tandem::data;
using namespace tandem::test;

namespace {

std::shared_ptr<const ImageDataset> small_set(std::int64_t count = 53) {
  return std::make_shared<const ImageDataset>(make_synthetic({.count = count, .channels = 3, .side = 12}));
}

LoaderOptions options_with(int threads, int prefetch = 2) {
  return {.global_batch_size = 8,
          .augment = parse_augment("crop=2,flip-alternating,rotate,jitter,offset,gain,cutout-inside=4"),
          .seed = 4,
          .threads = threads,
          .prefetch = prefetch};
}

/// All pixels and labels of an epoch, one image after the other.
struct Epoch {
  std::vector<std::vector<float>> images;
  std::vector<std::int64_t> labels;
  std::vector<std::int64_t> counts;

  friend bool operator==(const Epoch&, const Epoch&) = default;
};

Epoch run(Loader& loader, std::uint32_t epoch) {
  Epoch result;
  loader.start(epoch);
  while (const auto batch = loader.next()) {
    REQUIRE(batch->index == static_cast<std::int64_t>(result.counts.size()));
    result.counts.push_back(batch->global_count);
    const std::vector<float> values = batch->images.to_vector<float>();
    const auto size = static_cast<std::ptrdiff_t>(3 * 12 * 12);
    for (std::ptrdiff_t i = 0; i < batch->count(); ++i)
      result.images.emplace_back(values.begin() + i * size, values.begin() + (i + 1) * size);
    const auto labels = batch->labels.to_vector<std::int64_t>();
    result.labels.insert(result.labels.end(), labels.begin(), labels.end());
  }
  return result;
}

/// A loader of halves against one of f32, whose images are cast on the device.
void check_half_images(Device device) {
  const auto dataset = small_set();
  const DistributedSampler sampler(dataset->size(), 1, 0, true, 2);
  LoaderOptions options = options_with(1);
  options.device = device;
  for (const DType dtype : {DType::f16, DType::bf16}) {
    INFO(name_of(dtype));
    options.dtype = DType::f32;
    Loader wide(dataset, sampler, options);
    options.dtype = dtype;
    Loader half(dataset, sampler, options);
    wide.start(1);
    half.start(1);
    while (const auto batch = half.next()) {
      REQUIRE(batch->images.dtype() == dtype);
      REQUIRE(batch->images.is_dense(Layout::channels_last));
      REQUIRE(batch->images.device() == device);
      const Tensor rounded = empty_like(batch->images);
      kernels::cast(wide.next()->images, Out(rounded));
      REQUIRE(batch->images.to_vector<float>() == rounded.to_vector<float>());
    }
    CHECK_FALSE(wide.next().has_value());
  }
}

}  // namespace

TEST_CASE("batches do not depend on threads, and every epoch differs") {
  const auto dataset = small_set();
  const DistributedSampler sampler(dataset->size(), 1, 0, true, 2);
  Loader plain(dataset, sampler, options_with(0));
  const Epoch first = run(plain, 0), second = run(plain, 1);
  CHECK(first.images.size() == 53);
  CHECK(first.counts == std::vector<std::int64_t>{8, 8, 8, 8, 8, 8, 5});
  CHECK_FALSE(first == second);
  for (const int threads : {1, 2, 5}) {
    Loader loader(dataset, sampler, options_with(threads, threads + 1));
    CHECK(run(loader, 0) == first);
    CHECK(run(loader, 1) == second);
    CHECK(run(loader, 0) == first);
  }
}

TEST_CASE("a loader without a sampler makes one of its options") {
  const auto dataset = small_set();
  const LoaderOptions options = options_with(1);
  for (const bool shuffle : {false, true}) {
    for (const int rank : {0, 2}) {
      const DistributedSampler sampler(dataset->size(), 3, rank, shuffle, options.seed);
      LoaderOptions own = options;
      own.shuffle = shuffle;
      own.share = {3, rank};
      Loader given(dataset, sampler, options), made(dataset, own);
      CHECK(run(made, 1) == run(given, 1));
      CHECK_THROWS_WITH(Loader(dataset, sampler, own),
                        ContainsText("shuffle and share are for data sets without a sampler of their own"));
    }
  }
  CHECK_THROWS_WITH(Loader(std::shared_ptr<const Dataset>(), {}),
                    ContainsText("loader: got no data set (a null pointer)"));
  CHECK_THROWS_WITH(Loader(dataset, {.share = {2, 2}}), ContainsText("rank"));
}

TEST_CASE("an epoch begun behind some batches has the others, with their numbers") {
  const auto dataset = small_set();
  for (const int rank : {0, 1}) {
    const DistributedSampler sampler(dataset->size(), 2, rank, true, 2);
    for (const int threads : {0, 2}) {
      Loader whole(dataset, sampler, options_with(threads)), rest(dataset, sampler, options_with(threads));
      for (std::int64_t skip = 0; skip <= 8; ++skip) {
        CAPTURE(rank, threads, skip);
        whole.start(3);
        rest.start(3, skip);
        for (std::int64_t i = 0; i < std::min<std::int64_t>(skip, 7); ++i) REQUIRE(whole.next().has_value());
        while (const auto expected = whole.next()) {
          const auto batch = rest.next();
          REQUIRE(batch.has_value());
          CHECK(batch->index == expected->index);
          CHECK(batch->global_count == expected->global_count);
          CHECK(batch->images.to_vector<float>() == expected->images.to_vector<float>());
          CHECK(batch->labels.to_vector<std::int64_t>() == expected->labels.to_vector<std::int64_t>());
        }
        CHECK_FALSE(rest.next().has_value());
      }
      CHECK_THAT(error_of([&] { rest.start(0, -1); }), ContainsText("cannot begin an epoch behind -1 batches"));
    }
  }
}

TEST_CASE("drop_last leaves the smaller batch of an epoch out, and nothing where all are full") {
  const auto dataset = small_set();
  const DistributedSampler sampler(53, 1, 0, true, 2);
  LoaderOptions options = options_with(2);
  Loader all(dataset, sampler, options);
  options.drop_last = true;
  Loader full(dataset, sampler, options);
  CHECK(full.batches() == 6);
  CHECK(full.images_per_epoch() == 48);
  CHECK(all.batches() == 7);
  CHECK(all.images_per_epoch() == 53);
  Epoch expected = run(all, 4);
  expected.counts.pop_back();
  expected.images.resize(48);
  expected.labels.resize(48);
  CHECK(run(full, 4) == expected);

  options.global_batch_size = 53;
  CHECK(Loader(dataset, sampler, options).images_per_epoch() == 53);
  options.global_batch_size = 54;
  CHECK_THAT(error_of([&] { Loader(dataset, sampler, options); }),
             ContainsText("drop_last leaves nothing: 53 examples do not fill a batch of 54"));
}

TEST_CASE("batches are f32 channels_last and i64, tagged as data") {
  const auto dataset = small_set();
  Loader loader(dataset, DistributedSampler(53, 1, 0, false, 2), {.global_batch_size = 8});
  loader.start(0);
  const auto batch = loader.next();
  REQUIRE(batch.has_value());
  CHECK(batch->images.dtype() == DType::f32);
  CHECK(batch->images.shape() == Shape({8, 3, 12, 12}));
  CHECK(batch->images.is_dense(Layout::channels_last));
  CHECK(batch->images.storage()->tag() == MemoryTag::data);
  CHECK(batch->labels.to_vector<std::int64_t>() == std::vector<std::int64_t>{0, 1, 2, 3, 4, 5, 6, 7});
  const float byte = dataset->images.data<std::uint8_t>()[0];
  CHECK(std::abs(batch->images.to_vector<float>()[0] - (byte / 255 - dataset->mean[0]) / dataset->deviation[0]) <
        1e-6F);
}

TEST_CASE("every image gets the augmentation of its own number and epoch") {
  const auto dataset = small_set();
  const DistributedSampler sampler(53, 2, 1, true, 2);
  const LoaderOptions options = options_with(1);
  Loader loader(dataset, sampler, options);
  for (const std::uint32_t epoch : {0u, 5u}) {
    const auto order = sampler.order(epoch);
    loader.start(epoch);
    while (const auto batch = loader.next()) {
      const BatchPart part = sampler.part(batch->index, options.global_batch_size);
      for (std::int64_t i = 0; i < part.count; ++i) {
        const std::int64_t image = order[static_cast<std::size_t>(part.begin + i)];
        const auto augment = draw_augment(options.augment, options.seed, epoch, image, 12, 12);
        const Tensor expected = Tensor::empty({1, 3, 12, 12}, {.layout = Layout::channels_last});
        kernels::augment_images(dataset->images, {&image, 1}, {&augment, 1}, {dataset->mean, dataset->deviation},
                                Out(expected));
        REQUIRE(batch->images.narrow(0, i, 1).to_vector<float>() == expected.to_vector<float>());
        REQUIRE(batch->labels.data<std::int64_t>()[i] == image % 10);
      }
    }
  }
}

TEST_CASE("alternating flips show each image both ways in any two epochs, whoever gets it") {
  const auto dataset = small_set(50);
  const std::int64_t size = 3 * 12 * 12;
  // Of each image, whether an epoch mirrored it; those of its rank and threads, told by their labels' places in the
  // order.
  const auto flips_in = [&](std::uint32_t epoch, int world, int threads, std::int64_t skip) {
    std::vector<int> flips(50, -1);
    for (int rank = 0; rank < world; ++rank) {
      const DistributedSampler sampler(50, world, rank, true, 2);
      Loader loader(
          dataset, sampler,
          {.global_batch_size = 8, .augment = parse_augment("flip-alternating"), .seed = 4, .threads = threads});
      const auto order = sampler.order(epoch);
      loader.start(epoch, skip);
      while (const auto batch = loader.next()) {
        const BatchPart part = sampler.part(batch->index, 8);
        for (std::int64_t i = 0; i < part.count; ++i) {
          const std::int64_t image = order[static_cast<std::size_t>(part.begin + i)];
          const float* values = batch->images.data<float>() + i * size;  // channels_last
          const std::uint8_t* bytes = dataset->images.data<std::uint8_t>() + image * size;
          bool is_plain = true, is_mirrored = true;
          for (std::int64_t c = 0; c < 3; ++c)
            for (std::int64_t y = 0; y < 12; ++y)
              for (std::int64_t x = 0; x < 12; ++x) {
                const auto channel = static_cast<std::size_t>(c);
                const auto shows = [&](std::int64_t column) {
                  const float unit = bytes[(c * 12 + y) * 12 + column] / 255.0F;
                  const float expected = (unit - dataset->mean[channel]) / dataset->deviation[channel];
                  return std::abs(values[(y * 12 + x) * 3 + c] - expected) <
                         1e-4F;  // neighbours differ by 1/56 or more
                };
                is_plain = is_plain && shows(x);
                is_mirrored = is_mirrored && shows(11 - x);
              }
          REQUIRE(is_plain != is_mirrored);
          flips[static_cast<std::size_t>(image)] = is_mirrored ? 1 : 0;
        }
      }
    }
    return flips;
  };
  const std::vector<int> first = flips_in(0, 1, 0, 0), second = flips_in(1, 1, 1, 0);
  CHECK(std::count(first.begin(), first.end(), 1) > 10);  // of 50 with chance 1/2: seven deviations from 0
  CHECK(std::count(first.begin(), first.end(), 0) > 10);
  for (std::size_t i = 0; i < first.size(); ++i) CHECK(first[i] + second[i] == 1);
  CHECK(flips_in(2, 1, 2, 0) == first);
  for (const int world : {2, 3}) {
    CHECK(flips_in(6, world, 1, 0) == first);
    CHECK(flips_in(7, world, 0, 0) == second);
  }
  // A run that goes on in the middle of an epoch.
  const std::vector<int> rest = flips_in(1, 2, 1, 4);
  CHECK(std::count(rest.begin(), rest.end(), -1) == 32);
  for (std::size_t i = 0; i < rest.size(); ++i) CHECK((rest[i] == -1 || rest[i] == second[i]));
}

TEST_CASE("ranks together see the global batches of one rank") {
  const auto dataset = small_set(50);
  const int world = GENERATE(1, 2, 3, 5, 7);
  Loader whole(dataset, DistributedSampler(50, 1, 0, true, 2), options_with(1));
  std::vector<std::unique_ptr<Loader>> ranks;
  for (int rank = 0; rank < world; ++rank)
    ranks.push_back(std::make_unique<Loader>(dataset, DistributedSampler(50, world, rank, true, 2), options_with(1)));
  whole.start(3);
  for (auto& loader : ranks) loader->start(3);
  std::int64_t images = 0;
  while (const auto batch = whole.next()) {
    std::vector<float> values;
    std::vector<std::int64_t> labels;
    for (auto& loader : ranks) {
      const auto part = loader->next();
      REQUIRE(part.has_value());
      REQUIRE(part->global_count == batch->count());
      const auto part_values = part->images.to_vector<float>();
      const auto part_labels = part->labels.to_vector<std::int64_t>();
      values.insert(values.end(), part_values.begin(), part_values.end());
      labels.insert(labels.end(), part_labels.begin(), part_labels.end());
    }
    REQUIRE(values == batch->images.to_vector<float>());
    REQUIRE(labels == batch->labels.to_vector<std::int64_t>());
    images += batch->count();
  }
  CHECK(images == 50);
  for (auto& loader : ranks) CHECK(!loader->next().has_value());
}

TEST_CASE("half images are the f32 ones, rounded once") { check_half_images(Device{}); }

TEST_CASE("half images on a device are the f32 ones, rounded there", "[cuda]") {
  if (has_gpu()) check_half_images(kGpu);
}

TEST_CASE("a loader stops in the middle of an epoch and can start another") {
  const auto dataset = small_set();
  Loader loader(dataset, DistributedSampler(53, 1, 0, true, 2), options_with(2));
  loader.start(0);
  loader.next();
  const Epoch second = run(loader, 1);
  CHECK(second.images.size() == 53);
  loader.start(2);
  CHECK(loader.batches() == 7);
}

TEST_CASE("what goes wrong in the background reaches next()") {
  ImageDataset broken = *small_set();
  const auto shared = std::make_shared<ImageDataset>(broken);
  const int threads = GENERATE(0, 1, 3);
  Loader loader(shared, DistributedSampler(53, 1, 0, true, 2), options_with(threads));
  shared->mean.clear();  // behind its back
  loader.start(0);
  CHECK_THAT(error_of([&] { loader.next(); }), ContainsText("augment_images: 0 means"));
}

TEST_CASE("a loader refuses what makes no sense") {
  const auto dataset = small_set();
  const DistributedSampler sampler(53, 1, 0, true, 2);
  const auto refusal = [&](const LoaderOptions& options) {
    return error_of([&] { Loader(dataset, sampler, options); });
  };
  CHECK_THAT(refusal({.global_batch_size = 0}), ContainsText("got batch size 0"));
  CHECK_THAT(refusal({.threads = -1}), ContainsText("-1 threads"));
  CHECK_THAT(refusal({.prefetch = 0}), ContainsText("0 batches ahead"));
  CHECK_THAT(refusal({.dtype = DType::u8}), ContainsText("dtype u8 makes no sense"));
  CHECK_THAT(refusal({.augment = parse_augment("crop-reflect=12")}),
             ContainsText("crop-reflect=12 needs images larger"));
  CHECK_THAT(refusal({.augment = parse_augment("cutout-inside=13")}),
             ContainsText("cutout-inside=13 needs images as large as that, data set 'synthetic' has 12 x 12"));
  CHECK_THAT(error_of([&] { Loader(dataset, DistributedSampler(52, 1, 0, true, 2), {}); }),
             ContainsText("orders 52 examples, the data set has 53"));
  CHECK_THAT(error_of([&] { Loader(nullptr, sampler, {}); }), ContainsText("no data set"));
  ImageDataset broken = *dataset;
  broken.labels = dataset->labels.clone();
  Out(broken.labels).data<std::int64_t>()[5] = 10;
  CHECK_THAT(error_of([&] { Loader(std::make_shared<const ImageDataset>(broken), sampler, {}); }),
             ContainsText("image 5 has label 10, expected 0 to 9"));
  Loader loader(dataset, sampler, {});
  CHECK_THAT(error_of([&] { loader.next(); }), ContainsText("call start(epoch)"));
}

TEST_CASE("batches on a device are those of the CPU, for any number of threads", "[cuda]") {
  if (!has_gpu()) return;
  const auto dataset = small_set();
  const DistributedSampler sampler(dataset->size(), 1, 0, true, 2);
  Loader plain(dataset, sampler, options_with(0));
  const Epoch expected = run(plain, 3);
  for (const int threads : {0, 1, 3}) {
    LoaderOptions options = options_with(threads);
    options.device = kGpu;
    Loader loader(dataset, sampler, options);
    for (int round = 0; round < 2; ++round) CHECK(run(loader, 3) == expected);
    loader.start(0);
    const auto batch = loader.next();
    REQUIRE(batch.has_value());
    CHECK(batch->images.device() == kGpu);
    CHECK(batch->labels.device() == kGpu);
    CHECK(batch->images.is_dense(Layout::channels_last));
    CHECK(batch->images.storage()->tag() == MemoryTag::data);
  }
}

TEST_CASE("batches on a device may be kept, and are ready for whichever stream is current", "[cuda]") {
  if (!has_gpu()) return;
  const auto dataset = small_set();
  const DistributedSampler sampler(dataset->size(), 1, 0, true, 2);
  Loader plain(dataset, sampler, options_with(0));
  LoaderOptions options = options_with(2);
  options.device = kGpu;
  Loader loader(dataset, sampler, options);
  const Stream stream(kGpu);
  const StreamScope scope(stream);
  std::vector<Tensor> copies;
  loader.start(1);
  while (const auto batch = loader.next()) copies.push_back(batch->images.clone());  // the batch itself goes at once
  plain.start(1);
  for (const Tensor& copy : copies) CHECK(copy.to_vector<float>() == plain.next()->images.to_vector<float>());
}

TEST_CASE("a loader for a device that is not there is refused") {
  const auto dataset = small_set();
  const DistributedSampler sampler(dataset->size(), 1, 0, true, 2);
  LoaderOptions options = options_with(1);
  options.device = {DeviceType::cuda, cuda_device_count()};
  CHECK_THROWS_AS(Loader(dataset, sampler, options), Error);
}

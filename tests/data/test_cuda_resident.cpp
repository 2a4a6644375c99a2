// Batches that are made on a device of images that stay there are those that the CPU makes.
#include "tandem/core/memory.h"
#include "tandem/data/batch.h"
#include "tandem/data/deferred_batch.h"
#include "tandem/data/loader.h"
#include "tandem/data/make_dataset.h"
#include "tandem/data/stratified_split.h"
#include "tandem/data/synthetic.h"
#include "tests/support/catch.h"
#include "tests/support/cuda_device.h"
#include "tests/support/error_of.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

using namespace tandem;
using namespace tandem::test;
using namespace tandem::data;

namespace {

/// How images are made.
enum class Made { ahead, when_taken, in_place };

/// The next batch. In place: one of a shape is always in the same tensors.
std::optional<Batch> next_of(Loader& loader, Made made, std::vector<Batch>& places) {
  std::optional<DeferredBatch> batch = loader.next_deferred();
  if (!batch) return std::nullopt;
  if (made != Made::in_place) return batch->whole();
  for (Batch& place : places) {
    if (!batch->is_like(place.tensors)) continue;
    batch->write_to(place.tensors);
    return place;
  }
  places.push_back(batch->whole());
  return places.back();
}

/// The bytes of both tensors of all batches of two epochs, the second from its batch `skip` on.
std::vector<std::string> bytes_of_epochs(Loader& loader, std::int64_t skip, Made made = Made::ahead) {
  std::vector<std::string> bytes;
  std::vector<Batch> places;
  for (const std::uint32_t epoch : {0U, 1U}) {
    loader.start(epoch, epoch == 0 ? 0 : skip, made != Made::ahead);
    while (const auto batch = next_of(loader, made, places)) {
      CHECK(batch->images.is_same(batch->tensors[0]));
      CHECK(batch->labels.is_same(batch->tensors[1]));
      for (const Tensor& tensor : batch->tensors) {
        CHECK(tensor.device() == loader.options().device);
        REQUIRE(tensor.is_dense(Layout::channels_last));
        const Tensor here = tensor.to(Device{});
        const auto size = static_cast<std::size_t>(here.numel() * size_of(here.dtype()));
        bytes.emplace_back(static_cast<const char*>(here.raw_data()), size);
      }
    }
  }
  return bytes;
}

/// The first place where two lists differ; -1 where they do not.
std::ptrdiff_t first_difference(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  const auto [there, other] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  return there == a.end() && other == b.end() ? -1 : there - a.begin();
}

ImageDataset coloured(std::int64_t count) { return make_synthetic({.count = count, .channels = 3, .side = 9}); }

}  // namespace

TEST_CASE("a resident loader makes the batches of one on the CPU, bit for bit", "[cuda][loader]") {
  if (!has_gpu()) return;
  const std::string augment =
      GENERATE("none", "crop=2", "crop-reflect=2,flip", "flip-alternating", "rotate=20", "jitter=0.4",
               "offset=0.2,gain=0.3", "cutout=4", "cutout-inside=4", "crop,flip,jitter,rotate,offset,gain,cutout");
  const int ranks = GENERATE(1, 2);
  const DType dtype = GENERATE(DType::f32, DType::f16, DType::bf16);
  const auto images = std::make_shared<const ImageDataset>(coloured(23));
  for (int rank = 0; rank < ranks; ++rank) {
    INFO(augment << ", rank " << rank << " of " << ranks << ", " << name_of(dtype));
    LoaderOptions options{.global_batch_size = 8,
                          .augment = parse_augment(augment),
                          .seed = 5,
                          .shuffle = true,
                          .share = {ranks, rank},
                          .threads = 2,
                          .dtype = dtype};
    Loader plain(images, options);
    options.device = kGpu;
    options.resident = true;
    Loader resident(images, options);
    const auto expected = bytes_of_epochs(plain, 0);
    CHECK(expected.size() == 2 * (3 + 3));
    for (const Made made : {Made::ahead, Made::when_taken, Made::in_place})
      CHECK(first_difference(bytes_of_epochs(resident, 0, made), expected) == -1);
    if (dtype != DType::f32) continue;
    const auto rest = bytes_of_epochs(plain, 1);  // of the second epoch
    CHECK(rest.size() == 2 * (3 + 2));
    for (const Made made : {Made::ahead, Made::when_taken, Made::in_place})
      CHECK(first_difference(bytes_of_epochs(resident, 1, made), rest) == -1);
  }
}

TEST_CASE("a resident loader takes part of a data set, grey images, and a batch of none", "[cuda][loader]") {
  if (!has_gpu()) return;
  const auto grey = std::make_shared<const ImageDataset>(make_synthetic({.count = 11, .channels = 1, .side = 8}));
  const auto part = subset(grey, {10, 3, 3, 7, 0});
  // Of the last batch, of one image, the second rank has none.
  LoaderOptions options{.global_batch_size = 2, .augment = parse_augment("jitter,rotate,crop=1"), .share = {2, 1}};
  Loader plain(part, options);
  options.device = kGpu;
  options.resident = true;
  Loader resident(part, options);
  const auto expected = bytes_of_epochs(plain, 0);
  REQUIRE(expected.size() == 12);
  CHECK(expected.back().empty());
  for (const Made made : {Made::ahead, Made::when_taken, Made::in_place})
    CHECK(first_difference(bytes_of_epochs(resident, 0, made), expected) == -1);
  CHECK(resident.zeros(3)->images.shape() == Shape({3, 1, 8, 8}));
}

TEST_CASE("a resident loader holds the images once, and lets go of them", "[cuda][loader]") {
  if (!has_gpu()) return;
  const auto on_gpu = [] { return memory_stats(kGpu).current_of(MemoryTag::data); };
  const std::int64_t before = on_gpu();
  const auto images = std::make_shared<const ImageDataset>(coloured(100));
  {
    const Loader plain(images, {.device = kGpu});
    CHECK(on_gpu() == before);
    const Loader resident(images, {.device = kGpu, .resident = true});
    CHECK(on_gpu() - before >= images->images.numel());
    CHECK(on_gpu() - before < 2 * images->images.numel());
    CHECK(images->images.device() == Device{});
  }
  CHECK(on_gpu() == before);
}

TEST_CASE("images that are made when they are taken take no memory before", "[cuda][loader]") {
  if (!has_gpu()) return;
  const auto images = std::make_shared<const ImageDataset>(coloured(100));
  Loader loader(images, {.global_batch_size = 50, .threads = 0, .device = kGpu, .resident = true});
  const auto on_gpu = [] { return memory_stats(kGpu).current_of(MemoryTag::data); };
  const std::int64_t before = on_gpu(), of_batch = 50 * 3 * 9 * 9 * 4;
  for (const bool defers : {true, false}) {
    loader.start(0, 0, defers);
    std::optional<DeferredBatch> batch = loader.next_deferred();
    CHECK((on_gpu() - before < of_batch) == defers);
    CHECK(batch->whole().images.size(0) == 50);
    CHECK(on_gpu() - before >= of_batch);
    const Tensor first = batch->whole().images;
    CHECK(batch->whole().images.is_same(first));  // made once
  }
}

TEST_CASE("what cannot be resident is refused", "[cuda][loader]") {
  if (!has_gpu()) return;
  const auto images = std::make_shared<const ImageDataset>(coloured(4));
  const auto refusal = [](const std::shared_ptr<const Dataset>& dataset, LoaderOptions options) {
    options.device = kGpu;
    options.resident = true;
    return error_of([&] { const Loader loader(dataset, options); });
  };
  CHECK_THAT(refusal(images, {.mix = {.mixup = 1.0, .classes = 10}}), ContainsText("resident is not for mixed images"));
  CHECK_THAT(refusal(images, {.transform = [](Example example, ExampleRandom&) { return example; }}),
             ContainsText("without a transform"));
  CHECK_THAT(refusal(dataset_of({Tensor::zeros({4, 1}), Tensor::zeros({4})}), {}),
             ContainsText("resident is for images in memory"));
  CHECK_THAT(refusal(images, {.dtype = DType::f64}), ContainsText("resident batches are f32, f16 or bf16, not f64"));
}

TEST_CASE("images and labels that somebody has put on a GPU are refused", "[cuda][loader]") {
  if (!has_gpu()) return;
  const ImageDataset images = coloured(4);
  ImageDataset images_there = images, labels_there = images;
  images_there.images = images.images.to(kGpu);
  labels_there.labels = images.labels.to(kGpu);
  for (const ImageDataset& there : {images_there, labels_there}) {
    CHECK_THAT(error_of([&] { const Loader loader(there, {.device = kGpu}); }),
               ContainsText("images and labels must be on the CPU"));
    CHECK_THAT(error_of([&] { subset(there, std::vector<std::int64_t>{1}); }),
               ContainsText("LoaderOptions::resident takes images to a GPU"));
  }
}

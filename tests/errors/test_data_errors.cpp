// What users read of bad data sets, loaders and their options.
#include "tandem/core/device_query.h"
#include "tandem/data.h"
#include "tests/errors/bad_calls.h"

using namespace tandem;
using namespace tandem::data;
using namespace tandem::test;

namespace {

const ImageDataset& images() {
  static const ImageDataset set = make_synthetic({.count = 20, .side = 8});
  return set;
}

const Tensor kRows = Tensor::zeros({6, 2}), kTargets = Tensor::zeros({6}, {.dtype = DType::i64});

/// Numbers without images.
std::shared_ptr<const Dataset> numbers(std::int64_t size = 6) {
  return dataset_of(size, [](std::int64_t i) { return Example{Tensor::full({1}, static_cast<double>(i))}; });
}

NextExample nothing_of(std::uint32_t) {
  return [] { return std::optional<Example>(); };
}

/// A loader of the synthetic images with these options.
std::function<void()> loads(const LoaderOptions& options) {
  return [options] { const Loader loader(images(), options); };
}

/// All of an epoch.
void read(Loader& loader) {
  loader.start(0);
  while (loader.next()) {
  }
}

/// The first batch of a data set of one's own.
std::function<void()> reads(const std::shared_ptr<const Dataset>& set, const LoaderOptions& options) {
  return [=] {
    Loader loader(set, options);
    read(loader);
  };
}

/// Examples that differ in the one of number 3.
std::shared_ptr<const Dataset> with_odd_example(const Example& odd) {
  return dataset_of(6, [odd](std::int64_t i) { return i == 3 ? odd : Example{Tensor::zeros({2})}; });
}

ImageDataset changed(const std::function<void(ImageDataset&)>& change) {
  ImageDataset set = images();
  change(set);
  return set;
}

}  // namespace

TEST_CASE("errors of data sets read as recorded", "[errors]") {
  check_errors(
      "datasets",
      {
          {"TensorDataset, no tensors", [] { TensorDataset(std::vector<Tensor>{}); }},
          {"TensorDataset, an undefined tensor", [] { TensorDataset({kRows, Tensor()}); }},
          {"TensorDataset, a number", [] { TensorDataset({Tensor::full({}, 1.0)}); }},
          {"TensorDataset, other sizes", [] { TensorDataset({kRows, Tensor::zeros({5})}); }},
          {"TensorDataset, no such example", [] { TensorDataset({kRows}).get(6); }},
          {"TensorDataset, a negative example", [] { TensorDataset({kRows}).get(-1); }},
          {"TensorDataset, a batch beyond the end",
           [] { TensorDataset({kRows}).get_batch(std::vector<std::int64_t>{2, 6}, 0, {}); }},
          {"dataset_of, a negative size", [] { dataset_of(-1, [](std::int64_t) { return Example{}; }); }},
          {"dataset_of, no function", [] { dataset_of(3, std::function<Example(std::int64_t)>()); }},
          {"dataset_of, no such example", [] { numbers()->get(6); }},
          {"transformed, no data set", [] { transformed(nullptr, [](Example e) { return e; }); }},
          {"transformed, no function", [] { transformed(numbers(), nullptr); }},
          {"subset, no data set", [] { subset(nullptr, {1}); }},
          {"subset, a number beyond the end", [] { subset(numbers(), {0, 6}); }},
          {"subset, a negative number", [] { subset(numbers(), {-1}); }},
          {"subset, no such example", [] { subset(numbers(), {1, 2})->get(2); }},
          {"subset of images, a number beyond the end", [] { subset(images(), std::vector<std::int64_t>{3, 20}); }},
          {"stream_of, no function", [] { stream_of(nullptr); }},
          {"stream_of, a negative size", [] { stream_of(nothing_of, -2); }},
          {"default_collate, no examples", [] { default_collate({}); }},
          {"default_collate, an empty example", [] { default_collate(std::vector<Example>{{}}); }},
          {"default_collate, an undefined tensor", [] { default_collate(std::vector<Example>{{Tensor()}}); }},
          {"default_collate, other shapes",
           [] { default_collate(std::vector<Example>{{Tensor::zeros({2})}, {Tensor::zeros({3})}}); }},
          {"default_collate, other dtypes",
           [] { default_collate(std::vector<Example>{{kRows}, {Tensor::zeros({6, 2}, {.dtype = DType::f64})}}); }},
          {"default_collate, other numbers of tensors",
           [] { default_collate(std::vector<Example>{{kRows}, {kRows, kTargets}}); }},
          {"default_collate, many dimensions",
           [] { default_collate(std::vector<Example>{{Tensor::zeros({1, 1, 1, 1, 1, 1, 1, 1})}}); }},
          {"stratified_split, fraction 0", [] { stratified_split(std::vector<std::int64_t>{0, 1}, 0.0, 1); }},
          {"stratified_split, fraction 1", [] { stratified_split(std::vector<std::int64_t>{0, 1}, 1.0, 1); }},
          {"stratified_split, nothing held out", [] { stratified_split(std::vector<std::int64_t>{0, 1}, 0.1, 1); }},
          {"ImageDataset, images of floats",
           [] { check(changed([](ImageDataset& set) { set.images = Tensor::zeros({20, 3, 8, 8}); })); }},
          {"ImageDataset, too few labels",
           [] { check(changed([](ImageDataset& set) { set.labels = set.labels.narrow(0, 0, 19); })); }},
          {"ImageDataset, a label beyond the classes",
           [] { check(changed([](ImageDataset& set) { set.class_names.resize(9); })); }},
          {"ImageDataset, a mean too few", [] { check(changed([](ImageDataset& set) { set.mean.pop_back(); })); }},
          {"ImageDataset, a deviation of 0", [] { check(changed([](ImageDataset& set) { set.deviation[1] = 0; })); }},
          {"make_synthetic, no images", [] { make_synthetic({.count = 0}); }},
          {"make_synthetic, 5 channels", [] { make_synthetic({.channels = 5}); }},
          {"make_synthetic, tiny images", [] { make_synthetic({.side = 7}); }},
          {"parse_augment, an unknown kind", [] { parse_augment("crop,flop"); }},
          {"parse_augment, no number", [] { parse_augment("crop=big"); }},
          {"parse_augment, twice", [] { parse_augment("crop,crop-reflect"); }},
          {"parse_augment, two kinds of one family", [] { parse_augment("flip,flip-alternating"); }},
          {"parse_augment, a size for flip", [] { parse_augment("flip=2"); }},
          {"DistributedSampler, a negative size", [] { DistributedSampler(-1, 1, 0, false, 0); }},
          {"DistributedSampler, no such rank", [] { DistributedSampler(10, 2, 2, false, 0); }},
          {"DistributedSampler, batch size 0", [] { DistributedSampler(10, 1, 0, false, 0).batches(0); }},
          {"DistributedSampler, no such batch", [] { DistributedSampler(10, 1, 0, false, 0).part(2, 5); }},
      });
}

TEST_CASE("errors of loaders read as recorded", "[errors]") {
  const auto stream = [] { return stream_of(nothing_of); };
  check_errors(
      "loaders",
      {
          {"batch size 0", loads({.global_batch_size = 0})},
          {"drop_last of a batch too large", loads({.global_batch_size = 21, .drop_last = true})},
          {"threads below 0", loads({.threads = -1})},
          {"threads beyond all measure", loads({.threads = 257})},
          {"prefetch 0", loads({.prefetch = 0})},
          {"an integer dtype", loads({.dtype = DType::i32})},
          {"a device that is not there", loads({.device = {DeviceType::cuda, 63}})},
          {"a reflecting crop as wide as the images", loads({.augment = parse_augment("crop-reflect=8")})},
          {"a cutout inside that is wider than the images", loads({.augment = parse_augment("cutout-inside=9")})},
          {"a negative mixup", loads({.mix = {.mixup = -1.0, .classes = 10}})},
          {"mixing without classes", loads({.mix = {.mixup = 1.0}})},
          {"mixing into too few classes",
           [] {
             Loader loader(images(), {.mix = {.mixup = 1.0, .classes = 9}, .threads = 0});
             read(loader);
           }},
          {"mixing of other data", [] { Loader(numbers(), {.mix = {.mixup = 1.0, .classes = 10}}); }},
          {"mixing of a TensorDataset",
           reads(dataset_of({kRows, kTargets}), {.mix = {.mixup = 1.0, .classes = 10}, .threads = 0})},
          {"augmentation of other data", [] { Loader(numbers(), {.augment = parse_augment("flip")}); }},
          {"augmentation of a TensorDataset",
           [] { Loader(TensorDataset({kRows}), {.augment = parse_augment("flip")}); }},
          {"a share that does not exist", loads({.share = {.world_size = 2, .rank = 2}})},
          {"shuffle beside a sampler",
           [] { Loader(images(), DistributedSampler(20, 1, 0, false, 0), {.shuffle = true}); }},
          {"a sampler of another size", [] { Loader(images(), DistributedSampler(19, 1, 0, false, 0), {}); }},
          {"no data set", [] { Loader(std::shared_ptr<const Dataset>(), LoaderOptions{}); }},
          {"no stream", [] { Loader(std::shared_ptr<IterableDataset>(), RankShare{}, {}); }},
          {"the batches of a stream without a size", [=] { Loader(stream(), RankShare{}, {}).batches(); }},
          {"the data set of a stream", [=] { Loader(stream(), RankShare{}, {}).dataset(); }},
          {"a stream that ends too early",
           [] {
             Loader loader(stream_of(nothing_of, 5), RankShare{}, {.threads = 0});
             read(loader);
           }},
          {"next() before start()", [] { Loader(images(), {}).next(); }},
          {"a negative start", [] { Loader(images(), {}).start(0, -1); }},
          {"an example of another shape", reads(with_odd_example({Tensor::zeros({3})}), {.threads = 0})},
          {"an example without tensors", reads(with_odd_example({}), {.threads = 0})},
          {"a data set that throws",
           reads(dataset_of(3, [](std::int64_t) -> Example { throw std::runtime_error("no such file"); }),
                 {.threads = 1})},
          {"a transform that throws", reads(numbers(), {.threads = 0,
                                                        .transform = [](const Example&, ExampleRandom&) -> Example {
                                                          throw std::runtime_error("too dark");
                                                        }})},
          {"a collate function that makes nothing",
           reads(numbers(), {.threads = 0, .collate = [](std::span<const Example>) { return std::vector<Tensor>(); }})},
          {"a collate function that makes an undefined tensor",
           reads(numbers(), {.threads = 0, .collate = [](std::span<const Example>) { return std::vector{Tensor()}; }})},
      });
}

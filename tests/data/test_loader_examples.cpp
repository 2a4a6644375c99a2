// The loader over data sets of one's own: batches, order, ranks, transforms, and what goes wrong in them.
#include "tandem/core/parallel.h"
#include "tandem/data/batch_source.h"
#include "tandem/data/loader.h"
#include "tandem/data/make_dataset.h"
#include "tandem/data/synthetic.h"
#include "tandem/data/tensor_dataset.h"
#include "tests/data/loader_epochs.h"
#include "tests/support/catch.h"
#include "tests/support/cuda_device.h"
#include "tests/support/error_of.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>

using namespace tandem;
using namespace tandem::data;
using namespace tandem::test;

namespace {

/// x = i and a label 10 i; examples that come later in a batch are often ready first.
std::shared_ptr<const Dataset> numbers(std::int64_t size, std::int64_t fails_at = -1) {
  return dataset_of(size, [fails_at](std::int64_t i) -> Example {
    std::this_thread::sleep_for(std::chrono::microseconds((i * 7919) % 5 * 20));
    if (i == fails_at) throw std::runtime_error("the file is gone");
    return {Tensor::full({2}, static_cast<double>(i)),
            Tensor::full({}, static_cast<double>(10 * i), {.dtype = DType::i64})};
  });
}

}  // namespace

TEST_CASE("batches of a data set of one's own come in the sampler's order, whatever the number of threads") {
  const DistributedSampler sampler(23, 1, 0, true, 2);
  Batches expected;
  for (const std::int64_t i : sampler.order(3)) {
    if (expected.empty() || expected.back().size() == 5) expected.emplace_back();
    expected.back().push_back(static_cast<float>(i));
  }
  for (const int threads : {0, 1, 2, 5}) {
    Loader loader(numbers(23), sampler, {.global_batch_size = 5, .threads = threads, .prefetch = 3});
    CHECK(loader.batches() == 5);
    CHECK(run(loader, 3) == expected);
    CHECK(run(loader, 4) != expected);
    CHECK(run(loader, 3) == expected);
  }
}

TEST_CASE("a batch has all tensors of its examples, and the last are the labels") {
  const auto set = dataset_of(8, [](std::int64_t i) -> Example {
    const auto value = static_cast<double>(i);
    return {Tensor::full({3, 4, 4}, value), Tensor::full({2}, value, {.dtype = DType::u8}), Tensor::full({}, value)};
  });
  Loader loader(set, DistributedSampler(8, 1, 0, false, 0), {.global_batch_size = 4});
  loader.start(0);
  loader.next();
  const Batch batch = *loader.next();
  REQUIRE(batch.tensors.size() == 3);
  CHECK(batch.images.is_same(batch.tensors[0]));
  CHECK(batch.labels.is_same(batch.tensors[2]));
  CHECK(batch.images.shape() == Shape({4, 3, 4, 4}));
  CHECK(batch.images.is_dense(Layout::channels_last));
  CHECK(batch.tensors[1].dtype() == DType::u8);
  CHECK(batch.labels.to_vector<float>() == std::vector<float>{4, 5, 6, 7});
  CHECK(batch.images.storage()->tag() == MemoryTag::data);
  CHECK((batch.index == 1 && batch.count() == 4 && batch.global_count == 4));
}

TEST_CASE("ranks share the batches of a data set of one's own, and may get no row") {
  Loader whole(numbers(11), DistributedSampler(11, 1, 0, true, 2), {.global_batch_size = 5});
  Batches together(3);
  for (int rank = 0; rank < 2; ++rank) {
    Loader loader(numbers(11), DistributedSampler(11, 2, rank, true, 2), {.global_batch_size = 5});
    const Batches part = run(loader, 1);
    for (std::size_t i = 0; i < 3; ++i) together[i].insert(together[i].end(), part[i].begin(), part[i].end());
  }
  CHECK(together == run(whole, 1));
  Loader second(numbers(11), DistributedSampler(11, 2, 1, true, 2), {.global_batch_size = 5});
  second.start(0);
  second.next(), second.next();
  const Batch last = *second.next();
  CHECK((last.count() == 0 && last.global_count == 1));
  CHECK(last.images.shape() == Shape({0, 2}));
  CHECK(last.labels.dtype() == DType::i64);
}

TEST_CASE("rows of tensors are loaded as examples of one's own are") {
  const Tensor x = Tensor::from<float>({0, 1, 2, 3, 4, 5, 6}, {7, 1}), y = Tensor::zeros({7}, {.dtype = DType::i64});
  const DistributedSampler sampler(7, 1, 0, true, 9);
  const TensorDataset rows({x, y});
  Loader fast(rows, sampler, {.global_batch_size = 3, .threads = 2});
  Loader slow(dataset_of(7, [rows](std::int64_t i) { return rows.get(i); }), sampler, {.global_batch_size = 3});
  CHECK(run(fast, 5) == run(slow, 5));
}

TEST_CASE("a transform gets random numbers of the example and the epoch, whatever threads and ranks") {
  const Transform noisy = [](Example example, ExampleRandom& random) -> Example {
    return {Tensor::full({1}, example[0].to_vector<float>()[0] + random.uniform(0, 0.5f)), example[1]};
  };
  const auto batches = [&](int threads, std::uint64_t seed, std::uint32_t epoch) {
    Loader loader(numbers(9), DistributedSampler(9, 1, 0, false, 0),
                  {.global_batch_size = 4, .seed = seed, .threads = threads, .transform = noisy});
    return run(loader, epoch);
  };
  const Batches first = batches(0, 1, 0);
  CHECK(batches(3, 1, 0) == first);
  CHECK(batches(0, 2, 0) != first);
  CHECK(batches(0, 1, 1) != first);
  CHECK((first[2][0] >= 8 && first[2][0] < 8.5));
  Loader second(numbers(9), DistributedSampler(9, 2, 1, false, 0),
                {.global_batch_size = 4, .seed = 1, .transform = noisy});
  CHECK(run(second, 0)[0] == std::vector<float>{first[0][2], first[0][3]});
}

TEST_CASE("images are augmented before a transform of one's own, as they are without it") {
  const ImageDataset images = make_synthetic({.count = 10, .side = 12});
  LoaderOptions options{.global_batch_size = 5, .augment = parse_augment("crop=2,flip,cutout=3"), .seed = 4};
  const DistributedSampler sampler(10, 1, 0, true, 2);
  Loader plain(images, sampler, options);
  options.transform = [](Example example, ExampleRandom&) { return example; };
  Loader transformed_too(images, sampler, options);
  plain.start(2), transformed_too.start(2);
  while (const auto batch = plain.next())
    CHECK(transformed_too.next()->images.to_vector<float>() == batch->images.to_vector<float>());
  CHECK_FALSE(transformed_too.next().has_value());
}

TEST_CASE("a collate function makes what it likes of examples") {
  // Sequences of different lengths, padded: and how long each was.
  const auto sequences =
      dataset_of(5, [](std::int64_t i) { return Example{Tensor::full({i + 1}, static_cast<double>(i))}; });
  const Collate pad = [](std::span<const Example> examples) {
    std::int64_t longest = 0;
    for (const Example& example : examples) longest = std::max(longest, example[0].size(0));
    const auto count = static_cast<std::int64_t>(examples.size());
    const Tensor padded = Tensor::zeros({count, longest}), lengths = Tensor::zeros({count}, {.dtype = DType::i64});
    for (std::int64_t i = 0; i < count; ++i) {
      const Tensor& sequence = examples[static_cast<std::size_t>(i)][0];
      padded.select(0, i).narrow(0, 0, sequence.size(0)).copy_from(sequence);
      lengths.select(0, i).fill(static_cast<double>(sequence.size(0)));
    }
    return std::vector<Tensor>{padded, lengths};
  };
  const DistributedSampler sampler(5, 1, 0, false, 0);
  Loader loader(sequences, sampler, {.global_batch_size = 3, .collate = pad});
  loader.start(0);
  CHECK(loader.next()->images.shape() == Shape({3, 3}));
  const Batch last = *loader.next();
  CHECK(last.images.to_vector<float>() == std::vector<float>{3, 3, 3, 3, 0, 4, 4, 4, 4, 4});
  CHECK(last.labels.to_vector<std::int64_t>() == std::vector<std::int64_t>{4, 5});

  const auto refusal = [&](const Collate& collate) {
    Loader with(sequences, sampler, {.global_batch_size = 3, .collate = collate});
    with.start(0);
    return error_of([&] { with.next(); });
  };
  CHECK_THAT(refusal({}), ContainsText("collate: examples 0 and 1 cannot be stacked: f32[1] and f32[2]"));
  CHECK(refusal([](std::span<const Example>) { return std::vector<Tensor>{}; }) ==
        "loader: collate made no tensor; it must return one or more");
  CHECK(refusal([](std::span<const Example>) { return std::vector<Tensor>{Tensor()}; }) ==
        "loader: collate must make tensors on the CPU, and tensor 0 is undefined");
  CHECK(refusal([](std::span<const Example>) -> std::vector<Tensor> { throw std::logic_error("bad day"); }) ==
        "loader: collate of examples 0, 1, 2: bad day");
}

TEST_CASE("f32 inputs become the loader's dtype, and targets and integers stay as they are") {
  const auto set = dataset_of(4, [](std::int64_t) -> Example {
    return {Tensor::full({2}, 1.0 / 3), Tensor::full({}, 3, {.dtype = DType::i64}), Tensor::full({1}, 0.1)};
  });
  const DistributedSampler sampler(4, 1, 0, false, 0);
  for (const bool rows : {false, true}) {
    const auto data = rows ? dataset_of(default_collate(std::vector<Example>(4, set->get(0)))) : set;
    Loader loader(data, sampler, {.global_batch_size = 4, .dtype = DType::bf16});
    loader.start(0);
    const Batch batch = *loader.next();
    CHECK(batch.tensors[0].dtype() == DType::bf16);
    CHECK(batch.tensors[0].to_vector<float>()[0] == 0.333984375f);
    CHECK(batch.tensors[1].dtype() == DType::i64);
    CHECK(batch.tensors[2].dtype() == DType::f32);
  }
}

TEST_CASE("what goes wrong in an example is one error that names it, after the batches before") {
  const int threads = GENERATE(0, 1, 3);
  Loader loader(numbers(20, 13), DistributedSampler(20, 1, 0, false, 0),
                {.global_batch_size = 4, .threads = threads, .prefetch = 4});
  loader.start(0);
  for (int i = 0; i < 3; ++i) REQUIRE(loader.next().has_value());
  CHECK(error_of([&] { loader.next(); }) == "loader: example 13: the file is gone");
  CHECK_FALSE(loader.next().has_value());
  loader.start(1);  // from the beginning
  CHECK(loader.next().has_value());

  Loader odd(dataset_of(4, [](std::int64_t) -> Example { throw 5; }), DistributedSampler(4, 1, 0, false, 0), {});
  odd.start(0);
  CHECK(error_of([&] { odd.next(); }) == "loader: example 0: threw something that is no std::exception");
}

TEST_CASE("what goes wrong in a data set of whole batches is one error, which names its examples") {
  struct Broken final : BatchSource {
    std::int64_t size() const override { return 8; }
    std::vector<Tensor> get_batch(std::span<const std::int64_t> indices, std::uint32_t,
                                  const BatchOptions&) const override {
      if (indices[0] == 0) throw std::runtime_error("the file is gone");
      fail("rows.bin: is cut");
    }
  };
  const int threads = GENERATE(0, 2);
  Loader loader(Broken(), DistributedSampler(8, 1, 0, false, 0), {.global_batch_size = 4, .threads = threads});
  loader.start(0);
  CHECK(error_of([&] { loader.next(); }) == "loader: examples 0, 1, 2, ...: the file is gone");
  Loader second(subset(std::make_shared<const Broken>(), {7}), DistributedSampler(1, 1, 0, false, 0),
                {.threads = threads});
  second.start(0);
  CHECK(error_of([&] { second.next(); }) == "rows.bin: is cut");  // says where itself
}

TEST_CASE("examples that a subset does not have are refused") {
  for (const auto& set : {numbers(5), dataset_of({Tensor::zeros({5, 2})})}) {
    const auto part = subset(set, {4, 2});
    CHECK(part->get(1).size() == set->get(2).size());
    CHECK(error_of([&] { part->get(2); }) == "subset: there is no example 2, of 2; they are numbered from 0");
    CHECK(error_of([&] { part->get(-1); }) == "subset: there is no example -1, of 2; they are numbered from 0");
  }
}

TEST_CASE("loaders and samplers speak of examples, and refuse numbers that make no sense") {
  const auto with = [](const LoaderOptions& options) {
    return error_of([&] { Loader(numbers(4), DistributedSampler(4, 1, 0, false, 0), options); });
  };
  CHECK(with({.global_batch_size = 0}) == "loader: a batch needs 1 example or more, got batch size 0");
  CHECK(with({.global_batch_size = 5, .drop_last = true}) ==
        "loader: drop_last leaves nothing: 4 examples do not fill a batch of 5; choose a smaller batch");
  CHECK_THAT(with({.threads = 257}), ContainsText("257 threads and 3 batches ahead make no sense"));
  CHECK_THAT(with({.prefetch = 0}), ContainsText("1 threads and 0 batches ahead make no sense"));
  CHECK_THAT(with({.prefetch = 2'000'000'000}), ContainsText("give 0 to 256 and 1 to 65536"));
  CHECK_THAT(with({.dtype = DType::i64}), ContainsText("dtype i64 makes no sense"));
  CHECK_THAT(error_of([] { DistributedSampler(-1, 1, 0, false, 0); }), ContainsText("cannot order -1 examples"));
  CHECK_THAT(error_of([] { DistributedSampler(4, 1, 0, false, 0).batches(0); }),
             ContainsText("needs 1 example or more"));
}

TEST_CASE("a loader that is dropped in the middle of an epoch waits for the examples in work alone") {
  const int threads = GENERATE(0, 1, 3);
  std::atomic<int> made = 0;
  const auto slow = dataset_of(100000, [&](std::int64_t) {
    ++made;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return Example{Tensor::zeros({1})};
  });
  {
    Loader loader(slow, DistributedSampler(100000, 1, 0, true, 1),
                  {.global_batch_size = 50000, .threads = threads, .prefetch = 3});
    loader.start(0);
    while (threads > 0 && made < 5) std::this_thread::yield();
    loader.start(1);
    while (threads > 0 && made < 10) std::this_thread::yield();
  }
  CHECK(made < 1000);
}

TEST_CASE("background threads make examples alone, without a team of threads") {
  std::atomic<std::int64_t> in_background = 0;
  const auto set = dataset_of(2, [&](std::int64_t) -> Example {
    std::atomic<int> parts = 0;
    parallel_for(1 << 20, 1, [&](std::int64_t, std::int64_t) { ++parts; });
    in_background = std::max<std::int64_t>(in_background, parts);
    return {Tensor::zeros({1})};
  });
  const int before = num_threads();
  set_num_threads(4);
  Loader loader(set, DistributedSampler(2, 1, 0, false, 0), {.global_batch_size = 1, .threads = 1});
  loader.start(0);
  while (loader.next()) {
  }
  set_num_threads(before);
  CHECK(in_background == 1);
}

TEST_CASE("what is for images alone is refused of other data sets") {
  const DistributedSampler sampler(4, 1, 0, false, 0);
  const LoaderOptions options{.augment = parse_augment("flip")};
  CHECK_THAT(error_of([&] { Loader(numbers(4), sampler, options); }), ContainsText("augment is for images as bytes"));
  CHECK_THAT(error_of([&] { Loader(TensorDataset({Tensor::zeros({4, 3, 8, 8})}), sampler, options); }),
             ContainsText("augment is for images as bytes"));
}

TEST_CASE("zeros are shaped as a batch") {
  const DistributedSampler sampler(4, 1, 0, false, 0);
  const Loader loader(numbers(4), sampler, {.dtype = DType::f16});
  const Batch batch = *loader.zeros(3);
  CHECK(batch.images.shape() == Shape({3, 2}));
  CHECK(batch.images.dtype() == DType::f16);
  CHECK(batch.labels.dtype() == DType::i64);
  CHECK(batch.count() == 3);
  const Collate total = [](std::span<const Example>) { return std::vector<Tensor>{Tensor::zeros({})}; };
  CHECK_FALSE(Loader(numbers(4), sampler, {.collate = total}).zeros(3).has_value());
  CHECK_FALSE(Loader(stream_to(3), RankShare{}, {}).zeros(3).has_value());
}

TEST_CASE("batches of one's own arrive on a device", "[cuda]") {
  if (!has_gpu()) return;
  const DistributedSampler sampler(9, 1, 0, true, 1);
  const Collate own = [](std::span<const Example> examples) { return default_collate(examples); };
  for (const Collate& collate : {Collate(), own}) {
    Loader here(numbers(9), sampler, {.global_batch_size = 4, .collate = collate});
    Loader there(numbers(9), sampler, {.global_batch_size = 4, .threads = 2, .device = kGpu, .collate = collate});
    CHECK(run(there, 0) == run(here, 0));
    there.start(0);
    CHECK(there.next()->labels.device() == kGpu);
  }
  Loader rows(dataset_of({Tensor::zeros({9, 3, 4, 4})}), sampler, {.global_batch_size = 4, .device = kGpu});
  rows.start(0);
  CHECK(rows.next()->images.is_dense(Layout::channels_last));
  Loader stream(stream_to(7), RankShare{}, {.global_batch_size = 3, .device = kGpu});
  CHECK(run(stream, 0) == Batches{{0, 1, 2}, {3, 4, 5}, {6}});
}

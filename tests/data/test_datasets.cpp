// Data sets of functions, tensors and other data sets, and how their examples are stacked.
#include "tandem/data/collate.h"
#include "tandem/data/loader.h"
#include "tandem/data/make_dataset.h"
#include "tandem/data/synthetic.h"
#include "tandem/data/tensor_dataset.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"

using namespace tandem;
using namespace tandem::data;
using namespace tandem::test;

namespace {

Tensor counting(const Shape& shape, DType dtype = DType::f32) {
  std::vector<std::int32_t> numbers(static_cast<std::size_t>(element_count(shape)));
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<std::int32_t>(i);
  const Tensor whole = Tensor::from(numbers, shape);
  if (dtype == DType::i32) return whole;
  if (dtype == DType::i64) return Tensor::from(whole.to_vector<std::int64_t>(), shape);
  return Tensor::from(whole.to_vector<float>(), shape);
}

std::shared_ptr<const Dataset> squares(std::int64_t size) {
  return dataset_of(size, [](std::int64_t i) -> Example {
    return {Tensor::full({1}, static_cast<double>(i)), Tensor::full({}, static_cast<double>(i * i))};
  });
}

}  // namespace

TEST_CASE("rows of tensors are examples, in batches as one by one") {
  const Tensor images = counting({6, 2, 3, 4}), boxes = counting({6, 5}, DType::i32),
               labels = counting({6}, DType::i64);
  const TensorDataset set({images, boxes, labels});
  REQUIRE(set.size() == 6);
  const std::vector<std::int64_t> indices{4, 0, 4};
  const std::vector<Tensor> batch = set.get_batch(indices, 0, {});
  REQUIRE(batch.size() == 3);
  CHECK(batch[0].is_dense(Layout::channels_last));
  CHECK(batch[1].dtype() == DType::i32);
  CHECK(batch[0].storage()->tag() == MemoryTag::data);
  for (std::int64_t row = 0; row < 3; ++row) {
    const std::int64_t index = indices[static_cast<std::size_t>(row)];
    const Example example = set.get(index);
    CHECK(example[0].shape() == Shape({2, 3, 4}));
    CHECK(example[2].rank() == 0);
    CHECK(batch[0].select(0, row).to_vector<float>() == images.select(0, index).to_vector<float>());
    CHECK(batch[1].select(0, row).to_vector<float>() == boxes.select(0, index).to_vector<float>());
    CHECK(example[0].to_vector<float>() == images.select(0, index).to_vector<float>());
    CHECK(example[2].item() == static_cast<double>(index));
  }
  CHECK(set.get_batch({}, 0, {})[0].shape() == Shape({0, 2, 3, 4}));
}

TEST_CASE("tensors that are no examples are refused, and examples that are not there") {
  const auto refusal = [](std::vector<Tensor> tensors) {
    return error_of([&] { TensorDataset set(std::move(tensors)); });
  };
  CHECK(refusal({}) == "TensorDataset: got no tensors; give one or more");
  CHECK(refusal({Tensor::zeros({})}) ==
        "TensorDataset: tensor 0 needs a first dimension, that of the examples, got f32[]");
  CHECK(refusal({Tensor::zeros({4, 2}), Tensor()}) ==
        "TensorDataset: tensor 1 needs a first dimension, that of the examples, got undefined tensor");
  CHECK(refusal({Tensor::zeros({4, 2}), Tensor::zeros({5})}) ==
        "TensorDataset: tensor 1 has 5 rows, tensor 0 has 4: f32[5], f32[4, 2]; they must have as many as there are "
        "examples");
  const TensorDataset set({Tensor::zeros({4, 2})});
  const std::vector<std::int64_t> beyond{1, 4};
  CHECK(error_of([&] { set.get_batch(beyond, 0, {}); }) ==
        "TensorDataset: there is no example 4, of 4; they are numbered from 0");
}

TEST_CASE("functions make data sets, of numbers and of other data sets") {
  const auto numbers = squares(5);
  CHECK(numbers->size() == 5);
  CHECK(numbers->get(3)[1].item() == 9.0);
  const auto swapped = transformed(numbers, [](Example e) { return Example{e[1], e[0]}; });
  CHECK(swapped->get(4)[0].item() == 16.0);
  const auto some = subset(swapped, {4, 0});
  CHECK(some->size() == 2);
  CHECK(some->get(0)[1].item() == 4.0);
  CHECK(error_of([&] { subset(numbers, {0, 5}); }) ==
        "subset: there is no example 5 in a data set of 5; they are numbered from 0");
  CHECK(error_of([] { dataset_of(-1, [](std::int64_t) { return Example{}; }); }) ==
        "dataset_of: the size must be 0 or more, got -1");
  CHECK(error_of([] { transformed(nullptr, [](Example e) { return e; }); }) ==
        "transformed: got no data set (a null pointer)");
}

TEST_CASE("a subset of images makes batches as the images do, with the augmentation of their numbers") {
  const auto images = std::make_shared<const ImageDataset>(make_synthetic({.count = 20, .side = 12}));
  const LoaderOptions options{.global_batch_size = 2, .augment = parse_augment("crop=2,flip,rotate"), .seed = 3};
  Loader some(subset(images, {7, 3}), DistributedSampler(2, 1, 0, false, 0), options);
  some.start(4);
  const Batch batch = *some.next();
  const std::vector<std::int64_t> indices{7, 3};
  const std::vector<Tensor> expected = images->get_batch(indices, 4, {options.augment, options.seed});
  CHECK(batch.images.to_vector<float>() == expected[0].to_vector<float>());
  CHECK(batch.labels.to_vector<std::int64_t>() == std::vector<std::int64_t>{7, 3});
}

TEST_CASE("an image by itself is that of a batch without augmentation") {
  const ImageDataset images = make_synthetic({.count = 4, .side = 8});
  const Example example = images.get(2);
  const std::int64_t index = 2;
  CHECK(example[0].shape() == Shape({3, 8, 8}));
  CHECK(example[0].to_vector<float>() == images.get_batch({&index, 1}, 0, {})[0].to_vector<float>());
  CHECK(example[1].item() == 2.0);
}

TEST_CASE("examples are stacked along a new first dimension") {
  std::vector<Example> examples;
  for (int i = 0; i < 3; ++i)
    examples.push_back({Tensor::full({2, 4, 5}, i), Tensor::full({}, i, {.dtype = DType::i64}),
                        Tensor::full({3}, i, {.dtype = DType::u8})});
  examples[1][0] = counting({5, 4, 2}).transpose(0, 2);  // other strides
  const std::vector<Tensor> batch = default_collate(examples);
  REQUIRE(batch.size() == 3);
  CHECK(batch[0].shape() == Shape({3, 2, 4, 5}));
  CHECK(batch[0].is_dense(Layout::channels_last));
  CHECK(batch[0].select(0, 1).to_vector<float>() == examples[1][0].to_vector<float>());
  CHECK(batch[1].to_vector<std::int64_t>() == std::vector<std::int64_t>{0, 1, 2});
  CHECK(batch[2].dtype() == DType::u8);
  CHECK(batch[2].shape() == Shape({3, 3}));
}

TEST_CASE("examples that are not alike are named, with what each is") {
  const Tensor a = Tensor::zeros({3, 8, 8}), b = Tensor::zeros({3, 8, 9}), label = Tensor::full({}, 1);
  const auto refusal = [](const std::vector<Example>& examples, const std::vector<std::int64_t>& indices = {}) {
    return error_of([&] { default_collate(examples, indices); });
  };
  CHECK(
      refusal({{a, label}, {a, label}, {b, label}}, {30, 7, 12}) ==
      "collate: examples 30 and 12 cannot be stacked: f32[3, 8, 8], f32[] and f32[3, 8, 9], f32[]; make them alike by "
      "a transform, or give a collate function");
  CHECK_THAT(refusal({{a}, {a, label}}), ContainsText("examples 0 and 1 cannot be stacked: f32[3, 8, 8] and"));
  CHECK_THAT(refusal({{label}, {Tensor::full({}, 1, {.dtype = DType::i64})}}), ContainsText("f32[] and i64[]"));
  CHECK(refusal({}) == "collate: got no examples; give one or more");
  CHECK(refusal({{}}) == "collate: example 0 has no tensor; give one or more");
  CHECK(refusal({{Tensor()}}, {9}) == "collate: example 9 has an undefined tensor: undefined tensor");
  CHECK_THAT(refusal({{Tensor::zeros({1, 1, 1, 1, 1, 1, 1, 1})}}), ContainsText("more than 8 dimensions"));
}

TEST_CASE("random numbers of an example depend on seed, epoch and its number") {
  const auto draw = [](std::uint64_t seed, std::uint32_t epoch, std::int64_t index) {
    ExampleRandom random(seed, epoch, index);
    return std::vector<float>{random.uniform(), random.normal(), random.uniform(2, 3), float(random.below(1000))};
  };
  const auto first = draw(1, 2, 3);
  CHECK(draw(1, 2, 3) == first);
  for (const auto& other : {draw(2, 2, 3), draw(1, 3, 3), draw(1, 2, 4)})
    for (std::size_t i = 0; i < 4; ++i) CHECK(other[i] != first[i]);
  CHECK((first[2] >= 2 && first[2] < 3));
}

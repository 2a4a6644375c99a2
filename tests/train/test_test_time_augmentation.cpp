// Views of images and the mean of what a model gives for them, against plain loops and PyTorch's numbers.
#include "tandem/kernels/activation/activation.h"
#include "tandem/train/test_time_augmentation.h"

#include "tandem/autograd/functions.h"
#include "tandem/autograd/variable.h"
#include "tandem/comm/backends/backend.h"
#include "tandem/data/batch.h"
#include "tandem/data/make_dataset.h"
#include "tandem/data/synthetic.h"
#include "tandem/layers/layers.h"
#include "tandem/optim/sgd.h"
#include "tandem/train/evaluation.h"
#include "tandem/train/trainer.h"
#include "tests/comm/thread_ranks.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"

#include <algorithm>
#include <cmath>
#include <tuple>

using namespace tandem;
using namespace tandem::test;
using namespace tandem::train;

namespace {

/// Images with a number of its own for each pixel.
Tensor images_of(std::int64_t n, std::int64_t c, std::int64_t h, std::int64_t w) {
  std::vector<float> values(static_cast<std::size_t>(n * c * h * w));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>((i * 37) % 101) / 4.0f - 8.0f;
  return Tensor::from(values, {n, c, h, w});
}

/// The place that reflection at the edges, which are not repeated, leads to.
std::int64_t reflected(std::int64_t i, std::int64_t size) {
  if (i < 0) return -i;
  return i >= size ? 2 * (size - 1) - i : i;
}

std::vector<float> plain_view(const ImageView& view, const Tensor& images) {
  const std::vector<float> x = images.to_vector<float>();  // N,C,H,W
  const std::int64_t rows = images.size(2), columns = images.size(3);
  std::vector<float> result;
  for (std::int64_t image = 0; image < images.size(0) * images.size(1); ++image) {
    for (std::int64_t h = 0; h < rows; ++h) {
      for (std::int64_t w = 0; w < columns; ++w) {
        const std::int64_t column = view.is_mirrored ? columns - 1 - w : w;
        const std::int64_t from =
            (image * rows + reflected(h + view.down, rows)) * columns + reflected(column + view.right, columns);
        result.push_back(x[static_cast<std::size_t>(from)]);
      }
    }
  }
  return result;
}

/// Logits of flattened images.
struct Logits final : layers::Module {
  Tensor weight;  // [features, classes]
  explicit Logits(Tensor w) : weight(autograd::set_requires_grad(w)) { register_parameter("weight", weight); }
  Tensor forward(const Tensor& x) override {
    return autograd::matmul(autograd::flatten(x), autograd::cast(weight, x.dtype()));
  }
  std::string describe() const override { return "Logits"; }
};

Logits logits_of(std::int64_t features, std::int64_t classes) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < features; ++i)
    for (std::int64_t c = 0; c < classes; ++c) values.push_back(static_cast<float>((i * 5 + c * 7) % 11 - 4));
  return Logits(Tensor::from(values, {features, classes}));
}

data::Batch batch_of(const Tensor& images) {
  const Tensor labels = Tensor::zeros({images.size(0)}, {.dtype = DType::i64});
  data::Batch batch;
  batch.tensors = {images, labels};
  batch.images = images;
  batch.labels = labels;
  batch.local_count = batch.global_count = images.size(0);
  return batch;
}

constexpr TestTimeAugmentation kAll[] = {TestTimeAugmentation::none, TestTimeAugmentation::flip,
                                         TestTimeAugmentation::six, TestTimeAugmentation::six_equal};

}  // namespace

TEST_CASE("views are those of plain loops, and their weights add up to 1") {
  const Layout layout = GENERATE(Layout::row_major, Layout::channels_last);
  const Tensor images = images_of(2, 3, 4, 5).contiguous(layout);
  std::vector<std::size_t> counts;
  for (const TestTimeAugmentation augmentation : kAll) {
    CAPTURE(name_of(augmentation));
    double sum = 0.0;
    for (const ImageView& view : views_of(augmentation)) {
      const Tensor seen = apply(view, images);
      CHECK(seen.shape() == images.shape());
      CHECK(seen.to_vector<float>() == plain_view(view, images));
      sum += view.weight;
    }
    CHECK(std::abs(sum - 1.0) < 1e-15);
    counts.push_back(views_of(augmentation).size());
    CHECK(parse_test_time_augmentation(name_of(augmentation)) == augmentation);
  }
  CHECK(counts == std::vector<std::size_t>{1, 2, 6, 6});
  // Two rows and columns are enough to be reflected, and moves may be larger than those of `six`.
  const ImageView far{.down = 2, .right = -3};
  CHECK(apply(far, images).to_vector<float>() == plain_view(far, images));
  const Tensor small = images_of(1, 1, 2, 2);
  for (const ImageView& view : views_of(TestTimeAugmentation::six))
    CHECK(apply(view, small).to_vector<float>() == plain_view(view, small));
}

// import torch, torch.nn.functional as F
// x = torch.arange(24.).view(2, 1, 3, 4) ** 2 / 8
// w = torch.tensor([[(i * 5 + c * 7) % 11 - 4.0 for i in range(12)] for c in range(3)])
// net = lambda t: t.flatten(1) @ w.T
// mirror = lambda t: 0.5 * net(t) + 0.5 * net(t.flip(-1))
// p = F.pad(x, (1,) * 4, 'reflect')
// moved = torch.stack([mirror(t) for t in (p[:, :, 0:3, 0:4], p[:, :, 2:5, 2:6])]).mean(0)
// print(net(x), mirror(x), 0.5 * mirror(x) + 0.5 * moved)
TEST_CASE("means over views are PyTorch's") {
  std::vector<float> values;
  for (int i = 0; i < 24; ++i) values.push_back(static_cast<float>(i * i) / 8.0f);
  const data::Batch batch = batch_of(Tensor::from(values, {2, 1, 3, 4}));
  Logits model = logits_of(12, 3);
  const auto output = [&](TestTimeAugmentation augmentation) {
    return run_forward(over_views(augmentation), model, batch).detach().to_vector<float>();
  };
  CHECK(output(TestTimeAugmentation::none) == std::vector<float>{-26.125, 100.375, 86.625, 132.875, 649.375, 497.625});
  CHECK(output(TestTimeAugmentation::flip) == std::vector<float>{0.6875, 92.125, 100.375, 182.1875, 647.125, 517.375});
  CHECK(output(TestTimeAugmentation::six) == std::vector<float>{21.75, 88.1875, 64.5625, 233.25, 607.1875, 445.5625});
}

TEST_CASE("halves are averaged in f32, and a function of the program's own is called for each view") {
  const Tensor images = images_of(3, 2, 4, 4);
  Logits model = logits_of(32, 5);
  const data::Batch wide = batch_of(images), half = batch_of(autograd::cast(images, DType::f16));
  int calls = 0;
  const ForwardFunction own = [&](layers::Module& called, const data::Batch& batch) {
    ++calls;
    CHECK(batch.tensors[0].is_same(batch.images));
    CHECK(batch.labels.is_same(batch.tensors[1]));
    return autograd::scale(called(batch.images), 0.0625);
  };
  const Tensor expected = run_forward(over_views(TestTimeAugmentation::six, own), model, wide);
  CHECK(calls == 6);
  const Tensor actual = run_forward(over_views(TestTimeAugmentation::six, own), model, half);
  CHECK(actual.dtype() == DType::f32);
  const auto e = expected.detach().to_vector<float>(), a = actual.detach().to_vector<float>();
  // Sums of 32 products up to 17 x 6, of whole quarters, times 1/16: each output is a half that is rounded twice.
  for (std::size_t i = 0; i < e.size(); ++i) CHECK(std::abs(e[i] - a[i]) <= 32 * 17 * 6 / 16.0 * 0x1p-10);
}

TEST_CASE("a trainer's evaluations, their details and metrics are of the means over views") {
  const TestTimeAugmentation augmentation =
      GENERATE(TestTimeAugmentation::none, TestTimeAugmentation::flip, TestTimeAugmentation::six);
  CAPTURE(name_of(augmentation));
  const Tensor images = images_of(10, 1, 4, 4),
               labels = Tensor::from<std::int64_t>({0, 1, 2, 3, 0, 1, 2, 3, 0, 1}, {10});
  Logits model = logits_of(16, 4), plain = logits_of(16, 4);
  optim::SGD sgd(model.parameters(), {.lr = 1e-4}), other(plain.parameters(), {.lr = 1e-4});
  const auto set = data::dataset_of({images, labels});
  data::Loader training(set, {.global_batch_size = 5}), same(set, {.global_batch_size = 5}),
      testing(set, {.global_batch_size = 4}), validation(set, {.global_batch_size = 3});
  const Metric first{"first", [](const Tensor& output, const Tensor&) {
                       return autograd::sum(autograd::narrow(output, 1, 0, 1)).item();
                     }};
  const bool validates = GENERATE(false, true);
  Trainer trainer(model, sgd, training,
                  {.test = &testing,
                   .validation = validates ? &validation : nullptr,
                   .metrics = {first},
                   .test_time_augmentation = augmentation,
                   .detailed = true,
                   .dead_relus = true});
  Trainer without(plain, other, same);
  const EpochRecord record = trainer.fit(2), raw = without.fit(2);
  CHECK(model.weight.to_vector<float>() == plain.weight.to_vector<float>());  // training knows nothing of views
  CHECK(record.train_loss == raw.train_loss);

  std::vector<double> logits(40, 0.0);
  const std::vector<double> w = autograd::cast(model.weight.detach(), DType::f64).to_vector<double>();
  for (const ImageView& view : views_of(augmentation)) {
    const std::vector<float> seen = plain_view(view, images);
    for (std::size_t n = 0; n < 10; ++n)
      for (std::size_t i = 0; i < 16; ++i)
        for (std::size_t c = 0; c < 4; ++c)
          logits[n * 4 + c] += view.weight * static_cast<double>(seen[n * 16 + i]) * w[i * 4 + c];
  }
  double loss = 0.0, sum = 0.0;
  std::int64_t correct = 0;
  std::vector<std::int64_t> confusion(16, 0);
  const std::vector<std::int64_t> wanted = labels.to_vector<std::int64_t>();
  for (std::size_t n = 0; n < 10; ++n) {
    const auto row = logits.begin() + static_cast<std::ptrdiff_t>(n * 4);
    const auto label = static_cast<std::size_t>(wanted[n]),
               best = static_cast<std::size_t>(std::max_element(row, row + 4) - row);
    double exponentials = 0.0;
    for (std::size_t c = 0; c < 4; ++c)
      exponentials += std::exp(row[static_cast<std::ptrdiff_t>(c)] - *(row + static_cast<std::ptrdiff_t>(best)));
    loss += std::log(exponentials) + row[static_cast<std::ptrdiff_t>(best)] - row[static_cast<std::ptrdiff_t>(label)];
    correct += best == label ? 1 : 0;
    ++confusion[label * 4 + best];
    sum += row[0];
  }
  // Logits are sums of 16 products up to 17 x 7 in f32.
  const double bound = 16 * 16 * 17 * 7 * 0x1p-24;
  CHECK(std::abs(record.test_loss - loss / 10) < 2 * bound);
  CHECK(record.test_accuracy == 10.0 * static_cast<double>(correct));
  REQUIRE(record.test_metrics.size() == 1);
  CHECK(std::abs(record.test_metrics[0].second - sum / 10) < bound);
  if (validates) {
    CHECK(std::abs(record.validation_loss - loss / 10) < 2 * bound);
    CHECK(record.validation_accuracy == record.test_accuracy);
  }
  const EvaluationReport report = trainer.evaluation_report();
  CHECK(report.confusion == confusion);
  CHECK(report.loss == record.test_loss);
}

TEST_CASE("two ranks evaluate the views of one", "[threads]") {
  const auto images = std::make_shared<const data::ImageDataset>(
      data::make_synthetic({.count = 23, .channels = 1, .side = 8, .seed = 3}));
  const auto scores_on = [&](int ranks) {
    Scores scores;
    run_thread_ranks(ranks, [&](comm::ProcessGroup& group) {
      layers::Initializer initializer(1);
      layers::Sequential model;
      model.add<layers::Conv2d>({.in = 1, .out = 4, .kernel = 3, .padding = 1}, initializer);
      model.add<layers::BatchNorm2d>({.channels = 4, .activation = layers::Activation::relu});
      model.add<layers::Flatten>();
      model.add<layers::Linear>({.in = 256, .out = 10}, initializer);
      data::Loader loader(images, {23, group.size(), group.rank(), false, 1}, {.global_batch_size = 8});
      const Scores mine = evaluate(model, loader, group, Scoring({}, {}, 0.0, over_views(TestTimeAugmentation::six)));
      if (group.rank() == 0) scores = mine;
    });
    return scores;
  };
  const Scores one = scores_on(1), two = scores_on(2);
  CHECK(two.metrics.count == 23);
  CHECK(two.metrics.correct == one.metrics.correct);
  CHECK(two.metrics.loss() == Approx(one.metrics.loss()).epsilon(1e-6));
}

TEST_CASE("views need images, and outputs that can be averaged") {
  Logits model = logits_of(16, 4);
  const auto refused = [&](const data::Batch& batch, const ForwardFunction& forward = {}) {
    return error_of([&] { run_forward(over_views(TestTimeAugmentation::six, forward), model, batch); });
  };
  CHECK_THAT(refused(batch_of(Tensor::zeros({3, 16}))),
             ContainsText("test-time augmentation: needs floating images of shape N,C,H,W, got f32[3, 16]"));
  CHECK_THAT(refused(batch_of(Tensor::zeros({3, 1, 4, 4}, {.dtype = DType::u8}))),
             ContainsText("needs floating images of shape N,C,H,W, got u8[3, 1, 4, 4]"));
  CHECK_THAT(refused(batch_of(Tensor::zeros({3, 1, 16, 1}))),
             ContainsText("reflecting needs padding smaller than the image"));
  CHECK_THAT(refused(batch_of(Tensor::zeros({3, 1, 4, 4})),
                     [](layers::Module&, const data::Batch& batch) { return batch.labels; }),
             ContainsText("test-time augmentation: outputs must be floating, got i64[3]"));
  CHECK_THAT(error_of([] { parse_test_time_augmentation("seven"); }),
             ContainsText("'seven' is none of none, flip, six"));
}

TEST_CASE("a share of the images, those that the network is least sure of, is looked at in all views") {
  const Tensor images = images_of(9, 2, 4, 4).contiguous(Layout::channels_last);
  Logits model = logits_of(32, 3);
  const data::Batch batch = batch_of(images);
  const auto rows = [&](double share) {
    const std::vector<float> values =
        over_views(TestTimeAugmentation::six_equal, {}, share)(model, batch).to_vector<float>();
    std::vector<std::vector<float>> result;
    for (std::size_t i = 0; i < values.size(); i += 3) result.emplace_back(values.begin() + i, values.begin() + i + 3);
    return result;
  };
  const auto all = rows(1.0), alone = [&] {
    const std::vector<float> values = model(images).to_vector<float>();
    std::vector<std::vector<float>> result;
    for (std::size_t i = 0; i < values.size(); i += 3) result.emplace_back(values.begin() + i, values.begin() + i + 3);
    return result;
  }();
  std::vector<std::pair<double, std::size_t>> sure;  // the largest probability, and the image
  for (std::size_t i = 0; i < alone.size(); ++i) {
    const double largest = *std::max_element(alone[i].begin(), alone[i].end());
    double sum = 0.0;
    for (const float logit : alone[i]) sum += std::exp(static_cast<double>(logit) - largest);
    sure.emplace_back(1.0 / sum, i);
  }
  std::sort(sure.begin(), sure.end());
  for (const double share : {0.05, 0.25, 0.5, 0.999}) {
    const auto some = rows(share);
    const auto count = static_cast<std::size_t>(share * 9);
    for (std::size_t i = 0; i < sure.size(); ++i)
      CHECK(some[sure[i].second] == (i < count ? all : alone)[sure[i].second]);
  }
}

TEST_CASE("a share of the images is rounded down, but not for what doubles lack of it") {
  layers::Flatten model;
  for (const auto& [share, images, expected] :
       {std::tuple(0.29, 100, 29), std::tuple(0.07, 100, 7), std::tuple(0.57, 2000, 1140), std::tuple(0.3, 10, 3),
        std::tuple(0.289999, 100, 28), std::tuple(0.5, 3, 1), std::tuple(0.999999, 1000, 999),
        std::tuple(0.09, 10, 0)}) {
    CAPTURE(share, images);
    std::vector<std::int64_t> given;
    const ForwardFunction forward = [&](layers::Module& of, const data::Batch& batch) {
      given.push_back(batch.images.size(0));
      return of(batch.images);
    };
    over_views(TestTimeAugmentation::flip, forward, share)(model, batch_of(images_of(images, 1, 2, 2)));
    CHECK(given ==
          (expected == 0 ? std::vector<std::int64_t>{images} : std::vector<std::int64_t>{images, expected, expected}));
  }
}

TEST_CASE("a share that is none, and outputs that are no logits, are refused") {
  for (const double share : {0.0, -0.5, 1.5, std::nan("")})
    CHECK_THAT(error_of([&] { over_views(TestTimeAugmentation::flip, {}, share); }),
               ContainsText("test-time augmentation: the share must be above 0 and at most 1"));
  layers::Scale same(1.0);
  CHECK_THAT(error_of([&] { over_views(TestTimeAugmentation::flip, {}, 0.5)(same, batch_of(images_of(2, 1, 3, 3))); }),
             ContainsText("outputs must be logits [2, classes], got f32[2, 1, 3, 3]"));
}

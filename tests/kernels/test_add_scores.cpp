// Sums of loss and accuracy, on the CPU and on a GPU, against loops.
#include "tandem/kernels/loss/add_scores.h"

#include "tests/kernels/cuda_support.h"
#include "tests/support/devices.h"

#include <limits>

using namespace tandem;
using namespace tandem::test;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

kernels::ScoreSums read(const Tensor& sums) { return kernels::read_score_sums(sums.to(Device{})); }

/// Logits of few values, so that there are equal ones, with some rows that have NaN or infinities.
Tensor make_logits(Kind kind, const Shape& shape, DType dtype, std::uint32_t seed) {
  const Tensor logits = random_view(kind, shape, dtype, true, seed);
  for (std::int64_t row = 0; row < shape[0] && kind != Kind::expanded && shape[1] > 0; ++row) {
    const Tensor last = logits.narrow(0, row, 1).narrow(1, shape[1] - 1, 1);
    if (row % 7 == 3) last.fill(std::nan(""));
    if (row % 7 == 5) last.fill(kInfinity);
    if (row % 11 == 6) logits.narrow(0, row, 1).fill(-kInfinity);
  }
  return logits;
}

Tensor make_labels(std::int64_t rows, std::int64_t classes, std::int64_t gap) {
  std::vector<std::int64_t> labels(static_cast<std::size_t>(rows * gap));
  const RandomKey key{.seed = 9};
  for (std::size_t i = 0; i < labels.size(); ++i)
    labels[i] = key.below(i, static_cast<std::uint32_t>(std::min<std::int64_t>(classes, 3)));
  return Tensor::from(labels, {rows * gap}).narrow(0, 0, rows, gap);
}

std::int64_t expected_correct(const Tensor& logits, const Tensor& labels) {
  const auto values = logits.to_vector<double>();
  const auto wanted = labels.to_vector<std::int64_t>();
  const auto classes = static_cast<std::size_t>(logits.size(1));
  std::int64_t correct = 0;
  for (std::size_t row = 0; row < wanted.size(); ++row) {
    const auto label = static_cast<std::size_t>(wanted[row]);
    bool right = label < classes;
    for (std::size_t c = 0; right && c < classes; ++c) {
      const double value = values[row * classes + c], own = values[row * classes + label];
      right = c < label ? value < own : value <= own;
    }
    correct += right ? 1 : 0;
  }
  return correct;
}

}  // namespace

TEST_CASE("rows whose largest element stands at the label are counted", "[cuda][loss]") {
  const Device device = GENERATE(from_range(cpu_and_gpu()));
  CAPTURE(name_of(device));
  for (const DType dtype : kKernelDTypes) {
    for (const Shape& shape : {Shape{0, 4}, Shape{1, 1}, Shape{5, 2}, Shape{40, 10}, Shape{23, 33}, Shape{9, 300}}) {
      for (const Kind kind : kKinds) {
        if (kind == Kind::expanded && shape[0] == 0) continue;
        const Tensor here = make_logits(kind, shape, dtype, 3);
        for (const std::int64_t gap : {1, 3}) {
          CAPTURE(name_of(dtype), shape[0], shape[1], name_of(kind), gap);
          const Tensor labels = make_labels(shape[0], shape[1], gap);
          const bool on_gpu = device.type == DeviceType::cuda;
          const Tensor logits = on_gpu ? view_on_gpu(here) : here, wanted = on_gpu ? view_on_gpu(labels) : labels;
          const Tensor sums = kernels::make_score_sums(device, {.correct = 100});
          kernels::add_scores({}, logits, wanted, {}, Out(sums));
          REQUIRE(read(sums).correct == 100 + expected_correct(here, labels));
        }
      }
    }
  }
}

TEST_CASE("rows are counted where the grid ends, and labels outside of the classes are never right", "[cuda][loss]") {
  const Device device = GENERATE(from_range(cpu_and_gpu()));
  constexpr std::int64_t kRows = 132 * 16 * 8 + 77;
  const Tensor logits = Tensor::full({kRows, 2}, 1.0).to(device),
               labels = Tensor::full({kRows}, 0.0, {.dtype = DType::i64}).to(device);
  for (const auto& [label, row] : {std::pair(1.0, std::int64_t{0}), std::pair(-1.0, std::int64_t{1}),
                                   std::pair(2.0, kRows - 1), std::pair(0x1p40, kRows - 2)})
    labels.narrow(0, row, 1).fill(label);
  const Tensor sums = kernels::make_score_sums(device);
  kernels::add_scores({}, logits, labels, {.rows = kRows}, Out(sums));
  CHECK(read(sums).correct == kRows - 4);
  CHECK(read(sums).count == kRows);
  kernels::add_scores({}, Tensor::zeros({3, 0}).to(device), labels.narrow(0, 2, 3), {}, Out(sums));
  CHECK(read(sums).correct == kRows - 4);
}

TEST_CASE("losses are added up with the bits of a host's sums, of the epoch and of the step", "[cuda][loss]") {
  const Device device = GENERATE(from_range(cpu_and_gpu()));
  CAPTURE(name_of(device));
  const Tensor sums = kernels::make_score_sums(device, {.loss_sum = 0.1, .step_loss_sum = 7.0, .count = 5});
  double epoch = 0.1, step = 7.0;
  std::int64_t count = 5;
  for (int batch = 0; batch < 20; ++batch) {
    const DType dtype = kKernelDTypes[static_cast<std::size_t>(batch % 3)];
    const Tensor loss = random_values(batch % 2 == 0 ? Shape{} : Shape{1, 1}, dtype, false, 4);
    const std::int64_t rows = 3 + batch * batch;
    const bool begins_step = batch % 4 == 0;
    kernels::add_scores(loss.to(device), {}, {}, {rows, begins_step}, Out(sums));
    const double added = loss.item() * static_cast<double>(rows);
    epoch += added;
    step = begins_step ? added : step + added;
    count += rows;
    const kernels::ScoreSums now = read(sums);
    REQUIRE((now.loss_sum == epoch && now.step_loss_sum == step && now.count == count && now.correct == 0));
  }
  kernels::add_scores(Tensor::full({}, std::nan("")).to(device), {}, {}, {1, false}, Out(sums));
  CHECK(std::isnan(read(sums).step_loss_sum));
  kernels::add_scores(Tensor::full({}, 2.0).to(device), {}, {}, {3, true}, Out(sums));
  CHECK(std::isnan(read(sums).loss_sum));
  CHECK(read(sums).step_loss_sum == 6.0);
}

TEST_CASE("sums of scores refuse other tensors") {
  const Tensor sums = kernels::make_score_sums(Device{}), logits = Tensor::zeros({2, 3}),
               labels = Tensor::zeros({2}, {.dtype = DType::i64});
  const auto add = [&](const Tensor& loss, const Tensor& rows, const Tensor& wanted, const Tensor& to) {
    return error_of([&] { kernels::add_scores(loss, rows, wanted, {}, Out(to)); });
  };
  CHECK(add({}, logits, labels, sums) == "no error");
  CHECK_THAT(add({}, logits, labels, logits), ContainsText("add_scores: the sums must be those of make_score_sums()"));
  CHECK_THAT(add(logits, {}, {}, sums),
             ContainsText("add_scores: the loss must be one floating number, got f32[2, 3]"));
  CHECK_THAT(add({}, logits, {}, sums), ContainsText("needs logits and labels, or neither"));
  CHECK_THAT(add({}, logits, Tensor::zeros({2}), sums), ContainsText("needs floating logits [N, C] and labels i64[N]"));
}

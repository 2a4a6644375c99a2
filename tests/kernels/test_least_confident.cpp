// The rows that a network is least sure of, on the CPU and on a GPU, against doubles of the host.
#include "tandem/kernels/loss/confidence.h"
#include "tandem/kernels/loss/least_confident.h"

#include "tests/kernels/cuda_support.h"
#include "tests/support/devices.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

using namespace tandem;
using namespace tandem::test;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// By the host's own exponential; -1 with NaN, or where the largest is infinite.
double confidence_of(const std::vector<double>& row) {
  const double largest = *std::max_element(row.begin(), row.end());
  double sum = 0.0;
  for (const double value : row) sum += std::exp(value - largest);
  return std::isnan(sum) ? -1.0 : 1.0 / sum;
}

std::vector<std::vector<double>> rows_of(const Tensor& logits) {
  const std::vector<double> values = logits.to_vector<double>();
  const auto classes = static_cast<std::ptrdiff_t>(logits.size(1));
  std::vector<std::vector<double>> rows;
  for (std::ptrdiff_t n = 0; n < logits.size(0); ++n)
    rows.emplace_back(values.begin() + n * classes, values.begin() + (n + 1) * classes);
  return rows;
}

struct Found {
  std::vector<std::int64_t> chosen, places;
};

Found find(const Tensor& logits, std::int64_t count) {
  const TensorOptions numbers{.dtype = DType::i64, .device = logits.device()};
  const Tensor chosen = Tensor::empty({count}, numbers), places = Tensor::empty({logits.size(0)}, numbers);
  kernels::least_confident(logits, Out(chosen), Out(places));
  return {chosen.to_vector<std::int64_t>(), places.to_vector<std::int64_t>()};
}

/// Few values, so that rows are alike but for the order of their elements, some with NaN and infinities.
Tensor make_logits(Kind kind, const Shape& shape, DType dtype) {
  const Tensor logits = random_view(kind, shape, dtype, true, 5);
  for (std::int64_t n = 0; n < shape[0] && kind != Kind::expanded; ++n) {
    const Tensor last = logits.narrow(0, n, 1).narrow(1, shape[1] - 1, 1);
    if (n % 7 == 3) last.fill(std::nan(""));
    if (n % 7 == 5) last.fill(kInfinity);
    if (n % 11 == 4) last.fill(-kInfinity);
    if (n % 11 == 6) logits.narrow(0, n, 1).fill(-kInfinity);
    if (n % 13 == 1) logits.narrow(0, n, 1).fill(2.0);
  }
  return logits;
}

}  // namespace

TEST_CASE("the exponential of confidences is the host's to two units in the last place") {
  for (int i = 0; i < 40000; ++i) {
    const double x = -0.0173 * i;
    const double expected = std::exp(x), ulp = std::nextafter(expected, kInfinity) - expected;
    CHECK(std::abs(kernels::exp_of_negative(x) - expected) <= 2.0 * ulp);
  }
  CHECK(kernels::exp_of_negative(0.0) == 1.0);
  CHECK(kernels::exp_of_negative(-0x1p-60) == 1.0);
  CHECK(kernels::exp_of_negative(-700.5) == 0.0);
  CHECK(kernels::exp_of_negative(-kInfinity) == 0.0);
}

TEST_CASE("the least confident rows are those of sorted probabilities, with ties, infinities and NaN", "[cuda][loss]") {
  const Device device = GENERATE(from_range(cpu_and_gpu()));
  CAPTURE(name_of(device));
  for (const DType dtype : kKernelDTypes) {
    for (const Shape& shape : {Shape{1, 1}, Shape{5, 2}, Shape{40, 10}, Shape{300, 3}, Shape{9, 300}}) {
      for (const Kind kind : kKinds) {
        const Tensor here = make_logits(kind, shape, dtype);
        const Tensor logits = device.type == DeviceType::cuda ? view_on_gpu(here) : here;
        const auto rows = rows_of(here);
        const std::int64_t count = shape[0];
        std::vector<std::int64_t> order(rows.size());
        std::iota(order.begin(), order.end(), std::int64_t{0});
        for (const std::int64_t wanted : {std::int64_t{0}, (count + 1) / 3, count}) {
          CAPTURE(name_of(dtype), count, shape[1], name_of(kind), wanted);
          const Found found = find(logits, wanted);
          // What the host's exponential says, but for rounding; ties by their place.
          const auto sure = [&](std::int64_t row) { return confidence_of(rows[static_cast<std::size_t>(row)]); };
          std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
            return sure(a) != sure(b) ? sure(a) < sure(b) : a < b;
          });
          std::vector<std::int64_t> places(static_cast<std::size_t>(count));
          std::iota(places.begin(), places.end(), std::int64_t{0});
          for (std::int64_t m = 0; m < wanted; ++m) {
            const std::int64_t row = found.chosen[static_cast<std::size_t>(m)];
            const double expected = sure(order[static_cast<std::size_t>(m)]);
            CHECK(std::abs(sure(row) - expected) <= 1e-14 * std::abs(expected));
            places[static_cast<std::size_t>(row)] = count + m;
          }
          CHECK(found.places == places);
        }
      }
    }
  }
}

TEST_CASE("of rows that are equally sure the first are chosen, and all with NaN before them", "[cuda][loss]") {
  const Device device = GENERATE(from_range(cpu_and_gpu()));
  const float nan = std::nanf(""), infinity = std::numeric_limits<float>::infinity();
  const Tensor rows = Tensor::from<float>({1, 1, 2, nan, 5, 5, 0, 9, infinity, 0, -infinity, -infinity, 9, 0}, {7, 2});
  const Found found = find(rows.to(device), 6);
  CHECK(found.chosen == std::vector<std::int64_t>{1, 4, 5, 0, 2, 3});
  CHECK(found.places == std::vector<std::int64_t>{10, 7, 11, 12, 8, 9, 6});
}

TEST_CASE("devices choose the same of rows whose probabilities differ by the order of a sum alone", "[cuda][loss]") {
  if (!has_gpu()) return;
  constexpr std::uint32_t kRows = 600, kClasses = 10;
  std::vector<float> values;
  const RandomKey key{.seed = 4};
  for (std::uint32_t n = 0; n < kRows; ++n)
    for (std::uint32_t c = 0; c < kClasses; ++c)
      values.push_back(4.0f * key.uniform((c * 7 + n) % kClasses + n % 3 * c));
  const Tensor logits = Tensor::from(values, {kRows, kClasses});
  const Found here = find(logits, 300), there = find(logits.to(kGpu), 300);
  CHECK(here.chosen == there.chosen);
  CHECK(here.places == there.places);
}

TEST_CASE("what is no logits, and numbers of rows that do not fit, are refused") {
  const Tensor logits = Tensor::zeros({4, 3}), places = Tensor::zeros({4}, {.dtype = DType::i64});
  const auto refused = [](const Tensor& of, const Tensor& to, const Tensor& all) {
    return error_of([&] { kernels::least_confident(of, Out(to), Out(all)); });
  };
  CHECK_THAT(refused(places, places, places), ContainsText("needs floating logits [N, C] of one class or more"));
  CHECK_THAT(refused(Tensor::zeros({4, 0}), places, places), ContainsText("one class or more, got f32[4, 0]"));
  CHECK_THAT(refused(logits, logits, places), ContainsText("numbers of rows go to dense i64 vectors, got f32[4, 3]"));
  CHECK_THAT(refused(logits, places.narrow(0, 0, 2), places.narrow(0, 0, 3)), ContainsText("do not fit logits"));
  CHECK_THAT(refused(logits.narrow(0, 0, 3), places, places.narrow(0, 0, 3)), ContainsText("do not fit logits"));
}

// The moving average on a GPU against the CPU's.
#include "tandem/optim/ema.h"

#include "tests/support/catch.h"
#include "tests/support/cuda_device.h"

#include <cmath>
#include <vector>

using namespace tandem;
using namespace tandem::test;

// Both compute in f32, and a GPU fuses multiplications with additions: a rounding of numbers up to 4 for each update.
TEST_CASE("averages on the GPU are those of the CPU, but for rounding", "[cuda][optimizer]") {
  if (!has_gpu()) return;
  constexpr int kUpdates = 12;
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    CAPTURE(name_of(dtype));
    const Tensor here = Tensor::zeros({37, 3}, {.dtype = dtype}), there = here.to(kGpu);
    const Tensor bias_here = Tensor::full({5}, 4.0, {.dtype = dtype}), bias_there = bias_here.to(kGpu);
    const Tensor count = Tensor::from<std::int64_t>({0}, {}).to(kGpu);
    optim::ExponentialMovingAverage expected({{"w", here}, {"b", bias_here}}, 0.9),
        actual({{"w", there}, {"b", bias_there}, {"count", count}}, 0.9);
    for (int t = 0; t < kUpdates; ++t) {
      for (const Tensor& w : {here, there}) w.fill(0.25 * (t % 7));
      for (const Tensor& b : {bias_here, bias_there}) b.fill(-0.5 * (t % 5));
      count.fill(t);
      expected.update();
      actual.update();
    }
    CHECK(actual.averages()[2].second.item() == kUpdates - 1);
    for (std::size_t i = 0; i < 2; ++i) {
      CHECK(actual.averages()[i].second.device() == kGpu);
      const auto e = expected.averages()[i].second.to_vector<double>();
      const auto a = actual.averages()[i].second.to_vector<double>();
      for (std::size_t k = 0; k < e.size(); ++k) REQUIRE(std::abs(a[k] - e[k]) <= kUpdates * 4.0 * 0x1p-23);
    }
  }
}

TEST_CASE("an average passes over the steps that a GPU has skipped, whoever asks for the answer", "[cuda][optimizer]") {
  if (!has_gpu()) return;
  const Tensor good = Tensor::full({4}, 1.0, {.device = kGpu}),
               bad = Tensor::full({4}, static_cast<double>(INFINITY), {.device = kGpu});
  for (const bool asked : {true, false}) {
    CAPTURE(asked);
    const Tensor w = Tensor::zeros({37, 3}, {.device = kGpu}), count = Tensor::from<std::int64_t>({0}, {});
    optim::ExponentialMovingAverage expected({{"w", w}, {"count", count}}, 0.9),
        actual({{"w", w}, {"count", count}}, 0.9);
    for (int t = 0; t < 9; ++t) {
      w.fill(0.25 * (t % 7));
      count.fill(t);
      const bool is_taken = t != 0 && t != 4 && t != 5;
      if (is_taken) expected.update();
      const optim::FiniteCheck check(std::vector<Tensor>{is_taken ? good : bad});
      if (asked) check.passed();
      actual.update(check);
      if (t % 3 != 0) continue;  // else nobody has asked when the next step comes
      CHECK(actual.updates() == expected.updates());
      CHECK(actual.averages()[0].second.to_vector<float>() == expected.averages()[0].second.to_vector<float>());
      CHECK(actual.averages()[1].second.item() == expected.averages()[1].second.item());
    }
    CHECK(actual.averages()[1].second.item() == 8.0);
    CHECK(actual.updates() == 6);
  }
}

// Lookahead on a GPU against the CPU's.
#include "tandem/autograd/functions/cast.h"
#include "tandem/autograd/variable.h"
#include "tandem/optim/lookahead.h"
#include "tandem/optim/sgd.h"
#include "tests/support/catch.h"
#include "tests/support/cuda_device.h"

#include <cmath>

using namespace tandem;
using namespace tandem::test;

namespace {

/// A weight with its optimizer and slow weights, and a running statistic, somewhere.
struct Place {
  Tensor w, statistic;
  optim::SGD sgd;
  optim::Lookahead lookahead;

  Place(Device device, DType dtype, bool has_master)
      : w(autograd::set_requires_grad(Tensor::full({37, 3}, 1.0, {.dtype = dtype, .device = device}))),
        statistic(Tensor::full({5}, 0.5, {.device = device})),
        sgd({w}, {.lr = 0.125, .momentum = 0.75, .master_weights = has_master}),
        lookahead({{"w", w}, {"running_mean", statistic}}, sgd, {.every = 3, .decay = 0.9, .power = 1.0}) {}

  void step(std::int64_t t, std::int64_t steps) {
    autograd::set_grad(w, Tensor::full(w.shape(), 0.25 * static_cast<double>(t % 7) - 0.5, w.options()));
    sgd.step();
    statistic.fill(0.125 * static_cast<double>(t % 5));
    lookahead.after_step(t, steps);
  }

  std::vector<Tensor> tensors() const {
    std::vector<Tensor> all{w.detach(), statistic};
    for (const auto& [name, slow] : lookahead.slow_weights()) all.push_back(slow);
    if (sgd.master(0).defined()) all.push_back(sgd.master(0));
    return all;
  }
};

}  // namespace

// Both compute in f32, and a GPU fuses multiplications with additions: a few roundings of numbers up to 4 for each
// step. A half near the middle of two may then go to the other one, now and then.
TEST_CASE("slow weights on the GPU are those of the CPU, but for rounding", "[cuda][optimizer]") {
  if (!has_gpu()) return;
  constexpr std::int64_t kSteps = 10;  // one behind the last move
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    for (const bool has_master : {true, false}) {
      CAPTURE(name_of(dtype), has_master);
      Place here(Device{}, dtype, has_master), there(kGpu, dtype, has_master);
      const double unit = dtype == DType::f16 ? 0x1p-11 : dtype == DType::bf16 ? 0x1p-8 : 0x1p-24;
      const double bound = kSteps * 4 * 4.0 * 0x1p-24 + (is_half(dtype) && !has_master ? 4 * 4.0 * unit : 0.0);
      const auto compare = [&] {
        const std::vector<Tensor> e = here.tensors(), a = there.tensors();
        REQUIRE(e.size() == a.size());
        for (std::size_t i = 0; i < e.size(); ++i) {
          CHECK(a[i].device() == kGpu);
          const auto expected = autograd::cast(e[i], DType::f64).to_vector<double>();
          const auto actual = autograd::cast(a[i].to(Device{}), DType::f64).to_vector<double>();
          const double rounding = is_half(e[i].dtype()) ? 2 * 4.0 * unit : 0.0;
          for (std::size_t k = 0; k < expected.size(); ++k)
            REQUIRE(std::abs(actual[k] - expected[k]) <= bound + rounding);
        }
      };
      for (std::int64_t t = 1; t <= kSteps; ++t) {
        here.step(t, kSteps);
        there.step(t, kSteps);
        compare();
      }
      here.lookahead.finish();
      there.lookahead.finish();
      compare();
      if (there.sgd.master(0).defined())
        CHECK(there.sgd.master(0).to_vector<float>() == there.lookahead.slow_weights()[0].second.to_vector<float>());
    }
  }
}

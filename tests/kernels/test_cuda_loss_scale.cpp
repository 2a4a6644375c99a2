// Loss scales that recorded work changes.
#include "tandem/core/work_graph.h"
#include "tandem/kernels/optimizer/loss_scale.h"
#include "tests/support/catch.h"
#include "tests/support/cuda_device.h"

#include <vector>

using namespace tandem;
using namespace tandem::test;
using kernels::LossScaleRule;
using kernels::LossScaleState;

TEST_CASE("a loss scale that is changed by recorded work goes on with each launch", "[cuda][optimizer]") {
  if (!has_gpu()) return;
  const LossScaleRule rule{.growth_interval = 2};
  const Tensor state = kernels::make_loss_scale(kGpu, {.scale = 4.0, .inverse = 0.25}),
               found = Tensor::zeros({}, {.dtype = DType::i32, .device = kGpu}),
               start = Tensor::zeros({}, {.device = kGpu});
  LossScaleState expected{.scale = 4.0, .inverse = 0.25};
  const WorkGraph graph(kGpu, [&] {
    kernels::fill_loss_scale(state, 0.5, Out(start));
    kernels::update_loss_scale(std::vector{found}, rule, Out(state));
  });
  for (int step = 1; step <= 20; ++step) {
    const bool is_bad = step % 5 == 0 || step == 11;
    found.copy_from(Tensor::full({}, is_bad ? 1.0 : 0.0, {.dtype = DType::i32}));
    graph.launch();
    CHECK(start.item() == 0.5 * expected.scale);
    expected = kernels::next_loss_scale(expected, is_bad, rule);
    const LossScaleState now = kernels::read_loss_scale(state);
    CHECK(now.scale == expected.scale);
    CHECK(now.good_steps == expected.good_steps);
    CHECK(now.skipped_steps == expected.skipped_steps);
  }
}

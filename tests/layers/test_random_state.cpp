// Which step it is, as kernels read it.
#include "tandem/layers/random_state.h"

#include "tests/support/catch.h"
#include "tests/support/devices.h"
#include "tests/support/error_of.h"

using namespace tandem;
using namespace tandem::layers;
using namespace tandem::test;

TEST_CASE("a random state's step on a device is what was set last, in the same memory", "[cuda]") {
  const Device device = GENERATE(from_range(cpu_and_gpu()));
  CAPTURE(name_of(device));
  RandomState state(7);
  state.set_step(3);
  const Tensor step = state.step_on(device);
  CHECK(step.device() == device);
  CHECK(step.to_vector<std::int64_t>() == std::vector<std::int64_t>{3});
  state.set_step(0xffffffffu);
  CHECK(step.item() == 3.0);  // not before somebody asks
  CHECK(state.step_on(device).raw_data() == step.raw_data());
  CHECK(step.item() == 0xffffffffu);
  state.set_step(4);
  state.advance();
  state.upload();
  CHECK(step.item() == 5.0);
}

TEST_CASE("draws that are not recorded have the whole step in their key", "[cuda]") {
  const Device device = GENERATE(from_range(cpu_and_gpu()));
  RandomState state(7), keys(7);
  for (std::uint32_t step = 0; step < 3; ++step) {
    for (const std::uint32_t layer : {0u, 1u, 0u}) {
      const RandomDraw draw = state.next_draw(layer, device);
      CHECK_FALSE(draw.step.defined());
      CHECK(draw.key.step == step);
      CHECK(draw.key.bits(0) == keys.next_key(layer).bits(0));
    }
    state.advance();
    keys.advance();
  }
}

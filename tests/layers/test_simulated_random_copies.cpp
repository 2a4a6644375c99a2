// How often a random state copies its step.
#include "tandem/layers/dropout.h"
#include "tandem/simulator/runtime.h"
#include "tests/support/catch.h"
#include "tests/support/cuda_device.h"

using namespace tandem;
using namespace tandem::layers;
using namespace tandem::test;

TEST_CASE("a step is copied to a GPU once, and not for draws that are not recorded", "[cuda][dropout]") {
  if (!has_gpu()) return;
  const auto copies_of = [](auto&& call) {
    const std::int64_t before = simulator::runtime_counts().copies_to_device;
    call();
    return simulator::runtime_counts().copies_to_device - before;
  };
  Dropout first(0.5), second(0.5);
  const auto state = std::make_shared<RandomState>(7);
  for (Dropout* const layer : {&first, &second}) layer->set_random_state(state);
  const Tensor x = Tensor::full({100}, 1.0, {.device = kGpu});
  const auto draw = [&] { second(first(x)); };
  CHECK(copies_of(draw) == 1);  // for upload() to know the GPU
  state->advance();
  CHECK(copies_of(draw) == 0);
  CHECK(copies_of([&] { state->upload(); }) == 1);
  CHECK(copies_of([&] { state->upload(); }) == 0);
  state->set_step(state->step());
  CHECK(copies_of([&] { state->step_on(kGpu); }) == 0);
  state->advance();
  CHECK(copies_of([&] { state->step_on(kGpu); }) == 1);
  CHECK(copies_of(draw) == 0);
}

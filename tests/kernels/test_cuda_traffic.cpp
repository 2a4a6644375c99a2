// On a GPU the bytes of an op belong to the range of its kernel.
#include "tandem/core/timeline.h"
#include "tandem/kernels/elementwise/add.h"
#include "tests/support/catch.h"
#include "tests/support/cuda_device.h"

using namespace tandem;
using namespace tandem::test;

TEST_CASE("traffic: what an op told is its kernel's, not of the range around it", "[cuda]") {
  if (!has_gpu()) return;
  const Tensor a = Tensor::full({1000}, 1.0, {.device = kGpu}), b = Tensor::full({1000}, 2.0, {.device = kGpu});
  start_timeline(kGpu);
  {
    const ProfileRange range("forward");
    kernels::add(a, a, Out(b));
  }
  const Timeline timeline = stop_timeline();
  REQUIRE(timeline.device_events.size() == 2);
  for (const TimelineEvent& event : timeline.device_events) CHECK(event.bytes == (event.name == "add" ? 12000.0 : 0.0));
}

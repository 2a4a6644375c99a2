// Recorded work: who can record, and that what is recorded is done as often as it is enqueued.
#include "tandem/core/stream.h"
#include "tandem/core/tensor.h"
#include "tandem/core/work_graph.h"
#include "tests/support/catch.h"
#include "tests/support/cuda_device.h"
#include "tests/support/error_of.h"
#include "tests/support/skip.h"

using namespace tandem;
using namespace tandem::test;

TEST_CASE("the CPU records no work") {
  CHECK_FALSE(WorkGraph::can_record(Device{}));
  int runs = 0;
  CHECK_THAT(error_of([&] { WorkGraph(Device{}, [&] { ++runs; }); }), ContainsText("cpu cannot record work"));
  CHECK(runs == 0);
}

TEST_CASE("recorded work is done when it is enqueued, on what its tensors then hold", "[cuda]") {
  if (!has_gpu()) return;
  if (!WorkGraph::can_record(kGpu)) {
    CHECK_THAT(error_of([] { WorkGraph(kGpu, [] {}); }), ContainsText("cuda:0 cannot record work"));
    return;
  }
  const Tensor from = Tensor::full({1000}, 1.0, {.device = kGpu}), to = Tensor::zeros({1000}, {.device = kGpu});
  const auto work = [&] {
    const Tensor between = Tensor::empty({1000}, {.device = kGpu});  // belongs to the graph
    between.copy_from_async(from);
    to.copy_from_async(between);
  };
  const WorkGraph graph(kGpu, work);
  CHECK(to.to(Device{}).to_vector<float>() == std::vector<float>(1000, 0.0f));
  for (const float value : {2.0f, 3.0f}) {
    from.fill(static_cast<double>(value));
    graph.launch();
    CHECK(to.to_vector<float>() == std::vector<float>(1000, value));
  }
}

TEST_CASE("work that cannot be recorded leaves its stream usable", "[cuda]") {
  if (!has_gpu()) return;
  if (!WorkGraph::can_record(kGpu)) return skip_test("simulated GPUs record no work");
  CHECK_THROWS_AS(WorkGraph(kGpu, [] { fail("no"); }), Error);
  const Tensor tensor = Tensor::full({10}, 4.0, {.device = kGpu});
  CHECK(tensor.to_vector<float>() == std::vector<float>(10, 4.0f));
}

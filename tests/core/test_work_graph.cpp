// Recorded work: who can record, what may be recorded, and that it is done as often as it is enqueued.
#include "tandem/core/error.h"
#include "tandem/core/storage.h"
#include "tandem/core/stream.h"
#include "tandem/core/tensor.h"
#include "tandem/core/work_graph.h"
#include "tests/support/catch.h"
#include "tests/support/cuda_device.h"
#include "tests/support/error_of.h"

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
  CHECK(WorkGraph::can_record(kGpu));
  const Tensor from = Tensor::full({1000}, 1.0, {.device = kGpu}), to = Tensor::zeros({1000}, {.device = kGpu});
  bool was_recording = false;
  const auto work = [&] {
    was_recording = WorkGraph::is_recording();
    const Tensor between = Tensor::empty({1000}, {.device = kGpu});  // belongs to the graph
    between.copy_from_async(from);
    to.copy_from_async(between);
  };
  const WorkGraph graph(kGpu, work);
  CHECK(was_recording);
  CHECK_FALSE(WorkGraph::is_recording());
  CHECK(to.to(Device{}).to_vector<float>() == std::vector<float>(1000, 0.0f));
  for (const float value : {2.0f, 3.0f}) {
    from.fill(static_cast<double>(value));
    graph.launch();
    CHECK(to.to_vector<float>() == std::vector<float>(1000, value));
  }
}

TEST_CASE("what goes with each launch is done on the host behind each, and at once where nothing is recorded",
          "[cuda]") {
  int count = 0;
  WorkGraph::with_each_launch([&] { ++count; });
  CHECK(count == 1);
  if (!has_gpu()) return;
  const Tensor tensor = Tensor::zeros({10}, {.device = kGpu});
  const WorkGraph graph(kGpu, [&] {
    tensor.fill(2.0);
    WorkGraph::with_each_launch([&] { count += 10; });
    WorkGraph::with_each_launch([&] { count *= 2; });
  });
  CHECK(count == 1);
  for (const int expected : {22, 64}) {
    graph.launch();
    CHECK(count == expected);
  }
  CHECK_THROWS_AS(WorkGraph(kGpu,
                            [&] {
                              WorkGraph::with_each_launch([&] { count = 0; });
                              fail("no");
                            }),
                  Error);
  CHECK(count == 64);
}

TEST_CASE("work that cannot be recorded leaves its stream usable", "[cuda]") {
  if (!has_gpu()) return;
  CHECK_THROWS_AS(WorkGraph(kGpu, [] { fail("no"); }), Error);
  const Tensor tensor = Tensor::full({10}, 4.0, {.device = kGpu});
  CHECK(tensor.to_vector<float>() == std::vector<float>(10, 4.0f));
}

TEST_CASE("recorded work frees all memory that it takes, and none else", "[cuda]") {
  if (!has_gpu()) return;
  Tensor made, there = Tensor::full({1000}, 1.0, {.device = kGpu});
  CHECK_THAT(error_of([&] { WorkGraph(kGpu, [&] { made = Tensor::full({1000}, 2.0, {.device = kGpu}); }); }),
             ContainsText("the work keeps 3.9 KiB of device memory that it has taken"));
  CHECK_THAT(error_of([&] {
               WorkGraph(kGpu, [&] {
                 there.fill(3.0);
                 there = Tensor();
               });
             }),
             ContainsText("the work frees 3.9 KiB of device memory that was there before it"));
  CHECK_THAT(error_of([&] {
               WorkGraph(kGpu, [&] {
                 made = Tensor::full({500}, 2.0, {.device = kGpu});  // and frees what the graph before has left
                 fail("no");
               });
             }),
             ContainsText("no"));
  made = Tensor();
  const Tensor again = Tensor::full({1000}, 4.0, {.device = kGpu});
  CHECK(again.to_vector<float>() == std::vector<float>(1000, 4.0F));
}

TEST_CASE("recorded work that waits is refused where it waits", "[cuda]") {
  if (!has_gpu()) return;
  const Tensor there = Tensor::full({10}, 1.0, {.device = kGpu});
  CHECK_THAT(error_of([&] { WorkGraph(kGpu, [&] { there.to_vector<float>(); }); }),
             ContainsText("a copy from cuda:0 to cpu cannot be recorded"));
  CHECK_THAT(error_of([&] { WorkGraph(kGpu, [] { synchronize(kGpu); }); }), ContainsText("when stream is capturing"));
  CHECK_THAT(error_of([&] { WorkGraph(kGpu, [] { current_stream(kGpu).synchronize(); }); }),
             ContainsText("when stream is capturing"));
  CHECK(there.to_vector<float>() == std::vector<float>(10, 1.0F));
}

TEST_CASE("another stream takes part in recorded work between two events", "[cuda]") {
  if (!has_gpu()) return;
  const Stream side(kGpu);
  const Tensor from = Tensor::full({1000}, 1.0, {.device = kGpu}), to = Tensor::zeros({1000}, {.device = kGpu});
  const WorkGraph graph(kGpu, [&] {
    const Stream main = current_stream(kGpu);
    const Tensor between = Tensor::empty({1000}, {.device = kGpu});
    Event fork, join;
    fork.record(main);
    side.wait(fork);
    {
      const StreamScope scope(side);
      between.copy_from_async(from);
      between.storage()->record_stream(side);  // freed behind an event of this stream
    }
    join.record(side);
    main.wait(join);
    to.copy_from_async(between);
  });
  for (const double value : {2.0, 3.0}) {
    from.fill(value);
    graph.launch();
    CHECK(to.to_vector<float>() == std::vector<float>(1000, static_cast<float>(value)));
  }
  CHECK_THAT(error_of([&] {
               WorkGraph(kGpu, [&] {
                 Event fork;
                 fork.record(current_stream(kGpu));
                 side.wait(fork);
                 const StreamScope scope(side);
                 to.copy_from_async(from);
               });
             }),
             ContainsText("unjoined work"));
}

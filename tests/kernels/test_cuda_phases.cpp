// Launches in phases: what blocks leave to later ones, and the counters that they go by.
#include "tandem/core/stream.h"
#include "tandem/core/work_graph.h"
#include "tandem/kernels/norm/batch_norm.h"
#include "tests/kernels/cuda_support.h"
#include "tests/kernels/phase_kernels.h"

#include <algorithm>

namespace tandem::test {
namespace {

/// The memory of a launch.
struct ThreePhases {
  PhaseSizes sizes;
  Tensor numbers = of_blocks(0), sums = of_blocks(1), out = of_blocks(2);

  void run() const { run_three_phases(sizes, numbers, sums, out); }
  /// Forgets what was there before.
  void clear() const {
    for (const Tensor& tensor : {numbers, sums, out}) tensor.fill(-1e6);
  }
  bool is_right() const { return out.to_vector<double>() == sums_of_three_phases(sizes); }

 private:
  Tensor of_blocks(std::size_t phase) const {
    return Tensor::empty({sizes[phase], 64}, {.dtype = DType::i32, .device = kGpu});
  }
};

bool are_zero(const std::vector<std::uint32_t>& counters) {
  return std::ranges::all_of(counters, [](std::uint32_t counter) { return counter == 0; });
}

/// Batch norm of f16 images, there and back.
struct BatchNorm {
  Tensor x = random_values({3, 24, 9, 7}, DType::f16, false, 1).to(kGpu);
  Tensor grad_y = random_values({3, 24, 9, 7}, DType::f16, false, 2).to(kGpu);
  Tensor y = empty_like(x), grad_x = empty_like(x);
  std::vector<Tensor> of_channels = std::vector<Tensor>(6);

  BatchNorm() {
    for (Tensor& tensor : of_channels) tensor = Tensor::full({24}, 0.5, {.device = kGpu});
  }
  void run() const {
    const Tensor &mean = of_channels[0], &inverse_std = of_channels[1];
    kernels::batch_norm_forward_train(x, {}, {}, Out(of_channels[2]), Out(of_channels[3]), {}, Out(y), Out(mean),
                                      Out(inverse_std));
    kernels::batch_norm_backward(x, {}, {}, mean, inverse_std, {}, grad_y, Out(grad_x), Out(of_channels[4]),
                                 Out(of_channels[5]));
  }
  std::vector<double> results() const {
    std::vector<double> all = y.to_vector<double>();
    const auto append = [&](const Tensor& tensor) {
      const std::vector<double> values = tensor.to_vector<double>();
      all.insert(all.end(), values.begin(), values.end());
    };
    append(grad_x);
    for (const Tensor& tensor : of_channels) append(tensor);
    return all;
  }
};

}  // namespace

TEST_CASE("blocks of a phase find what all blocks of the phases before have left", "[cuda]") {
  if (!has_gpu()) return;
  for (const PhaseSizes& sizes :
       {PhaseSizes{1, 1, 1}, PhaseSizes{5, 1, 3}, PhaseSizes{2, 7, 1}, PhaseSizes{300, 40, 70}}) {
    CAPTURE(sizes[0], sizes[1], sizes[2]);
    const ThreePhases phases{sizes};
    for (int launch = 0; launch < 3; ++launch) {
      phases.clear();
      phases.run();
      CHECK(phases.is_right());
      CHECK(are_zero(values_of_counters(kGpu)));
    }
  }
}

TEST_CASE("streams and recordings have counters of their own, also where they work at once", "[cuda]") {
  if (!has_gpu()) return;
  const ThreePhases here{{4, 2, 3}}, there{{3, 5, 2}}, recorded{{6, 1, 4}};
  for (const ThreePhases* phases : {&here, &there, &recorded}) phases->clear();
  const void* const mine = place_of_counters(kGpu);
  CHECK(place_of_counters(kGpu) == mine);
  const Stream other(kGpu);
  const auto on_other = [&](const auto& work) {
    Event event;
    event.record(current_stream(kGpu));
    other.wait(event);
    const StreamScope scope{other};
    work();
  };
  const void *others = nullptr, *in_graph = nullptr;
  on_other([&] { others = place_of_counters(kGpu); });
  CHECK(others != mine);
  recorded.run();
  const WorkGraph graph(kGpu, [&] {
    in_graph = place_of_counters(kGpu);
    recorded.run();
    recorded.run();
  });
  CHECK(in_graph != mine);
  CHECK(in_graph != others);
  CHECK(place_of_counters(kGpu) == mine);
  for (int launch = 0; launch < 3; ++launch) {
    for (const ThreePhases* phases : {&here, &there, &recorded}) phases->clear();
    on_other([&] {
      there.run();
      if (launch == 1) graph.launch();
    });
    if (launch != 1) graph.launch();
    here.run();
    synchronize(kGpu);
    CHECK(here.is_right());
    CHECK(there.is_right());
    CHECK(recorded.is_right());
    CHECK(are_zero(values_of_counters(kGpu)));
  }
}

TEST_CASE("a recording takes counters of each stream that takes part", "[cuda]") {
  if (!has_gpu()) return;
  const ThreePhases first{{4, 2, 3}}, beside{{3, 5, 2}};
  const Stream other(kGpu);
  const void *mine = nullptr, *others = nullptr;
  const WorkGraph graph(kGpu, [&] {
    Event fork, join;
    fork.record(current_stream(kGpu));
    other.wait(fork);
    mine = place_of_counters(kGpu);
    first.run();
    {
      const StreamScope scope{other};
      others = place_of_counters(kGpu);
      beside.run();
    }
    join.record(other);
    current_stream(kGpu).wait(join);
  });
  CHECK(mine != others);
  for (int launch = 0; launch < 2; ++launch) {
    first.clear();
    beside.clear();
    graph.launch();
    CHECK(first.is_right());
    CHECK(beside.is_right());
  }
}

TEST_CASE("batch norms on two streams at once have the bits of one alone", "[cuda]") {
  if (!has_gpu()) return;
  const BatchNorm alone, first, second;
  alone.run();
  const std::vector<double> expected = alone.results();
  const Stream streams[] = {Stream(kGpu), Stream(kGpu)};
  synchronize(kGpu);
  const BatchNorm* const at_once[] = {&first, &second};
  for (std::size_t i = 0; i < 2; ++i) {
    const StreamScope scope{streams[i]};
    at_once[i]->run();
  }
  synchronize(kGpu);
  CHECK(first.results() == expected);
  CHECK(second.results() == expected);
}

}  // namespace tandem::test

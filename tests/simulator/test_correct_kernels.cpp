// Correct kernels run without alarm and give the expected numbers in every order, streams eager or deferred.
#include "tandem/simulator/include/cuda_runtime.h"
#include "tests/simulator/correct_kernels.h"
#include "tests/simulator/restore_settings.h"
#include "tests/support/catch.h"

using namespace tandem;
using namespace tandem::test;

// Shuffles take what nvcc takes, and refuse what it refuses, which is why no kernel can show it.
static_assert(simulator::kShufflesType<double> && simulator::kShufflesType<long long>);
static_assert(!simulator::kShufflesType<short> && !simulator::kShufflesType<float2>);

TEST_CASE("correct kernels raise no alarm and agree in 20 random orders") {
  const RestoreSettings restore;
  for (const CorrectKernel& kernel : correct_kernels()) {
    const std::vector<double> expected = kernel.expected();
    const auto check = [&] {
      INFO(kernel.name << ", order " << static_cast<int>(simulator::settings().order) << ", seed "
                       << simulator::settings().seed);
      CHECK(kernel.run() == expected);
    };
    for (const auto streams : {simulator::Streams::eager, simulator::Streams::deferred}) {
      simulator::settings().streams = streams;
      simulator::settings().order = simulator::Order::forward;
      check();
      simulator::settings().order = simulator::Order::reverse;
      check();
    }
    simulator::settings().order = simulator::Order::random;
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      simulator::settings().seed = seed;
      check();
    }
  }
}

TEST_CASE("threads that go on are not taken for waiting ones, however often they read the same") {
  for (const CorrectKernel& kernel : long_polling_kernels()) {
    INFO(kernel.name);
    CHECK(kernel.run() == kernel.expected());
  }
}

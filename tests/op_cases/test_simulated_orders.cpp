// Our kernels are deterministic: one bit pattern, whatever the order of threads and blocks.
#include "tests/op_cases/golden/golden_run.h"
#include "tests/op_cases/op_checks.h"
#include "tests/simulator/restore_settings.h"
#include "tests/support/catch.h"
#include "tests/support/cuda_device.h"

#include <cstring>

using namespace tandem;
using namespace tandem::test;

namespace {

constexpr std::uint64_t kOrders = 20;

bool same_bits(const Tensor& a, const Tensor& b) {
  return std::memcmp(a.raw_data(), b.raw_data(), static_cast<std::size_t>(a.numel() * size_of(a.dtype()))) == 0;
}

}  // namespace

// Not tagged [cuda]: it sets the order itself, and need not run once in each.
TEST_CASE("every op gives one bit pattern in 20 random orders of threads and blocks", "[orders]") {
  const RestoreSettings restore;
  std::size_t runs = 0;
  for_each_golden_run({{1, 8, 3, 3}, {2, 3, 3, 2}}, {}, [&](const GoldenRun& run) {
    if (run.integers) return;  // sums of whole numbers are alike in any order
    simulator::settings().order = simulator::Order::forward;
    const std::vector<Tensor> forward = results_of(run, kGpu);
    simulator::settings().order = simulator::Order::random;
    for (std::uint64_t seed = 1; seed <= kOrders; ++seed) {
      simulator::settings().seed = seed;
      const std::vector<Tensor> random = results_of(run, kGpu);
      for (std::size_t k = 0; k < forward.size(); ++k) {
        INFO(run.name << ", " << result_name(k) << ", random:" << seed);
        if (forward[k].defined()) CHECK(same_bits(random[k], forward[k]));
      }
      ++runs;
    }
  });
  CHECK(runs > 100 * kOrders);
}

// Convolution is deterministic: every family gives one bit pattern, whatever the order of threads and blocks.
#include "tandem/kernels/conv/families.h"
#include "tests/kernels/conv_families.h"
#include "tests/simulator/restore_settings.h"

#include <algorithm>

namespace tandem::test {

// Not tagged [cuda]: it sets the order itself, and need not run once in each.
TEST_CASE("every family of convolutions gives one bit pattern in all orders of threads and blocks", "[orders]") {
  const RestoreSettings restore;
  std::vector<FamilyCase> cases = family_cases();
  for (const FamilyCase& one : warpgroup_cases()) cases.push_back(one);
  CHECK(cases.size() >= 30);  // of the six families of today
  for (const kernels::cuda::ConvFamily& family : kernels::cuda::conv_families())
    CHECK(std::any_of(cases.begin(), cases.end(), [&](const FamilyCase& c) { return c.family.name == family.name; }));
  for (const FamilyCase& c : cases) {
    const ConvInputs in(c.one, c.dtype, false);
    const Tensor x = on_gpu(in.x), w = on_gpu(in.w), grad_y = on_gpu(in.grad_y);
    simulator::settings().order = simulator::Order::forward;
    const FamilyResults forward(c, x, w, grad_y);
    const auto check = [&](const char* order) {
      INFO(c.text() << ", " << order);
      const FamilyResults other(c, x, w, grad_y);
      CHECK(same_bits_on_gpu(other.y, forward.y));
      CHECK(same_bits_on_gpu(other.grad_x, forward.grad_x));
      CHECK(same_bits_on_gpu(other.grad_w, forward.grad_w));
    };
    simulator::settings().order = simulator::Order::reverse;
    check("reverse");
    simulator::settings().order = simulator::Order::random;
    for (const std::uint64_t seed : {1, 2, 3}) {
      simulator::settings().seed = seed;
      check("random");
    }
  }
}

}  // namespace tandem::test

// exp and erf for vectors: error over a fine grid, and the ends.
#include "tandem/kernels/activation/vector_math.h"

#include "tests/support/catch.h"

#include <cmath>

using namespace tandem::kernels::cpu;

TEST_CASE("vector_exp is within 2e-7 of exp, relatively") {
  double worst = 0.0;
  for (int i = -870000; i <= 870000; ++i) {
    const float x = static_cast<float>(i) * 1e-4f;
    if (std::abs(x) > 87.0f) continue;
    const double exact = std::exp(static_cast<double>(x));
    worst = std::max(worst, std::abs(static_cast<double>(vector_exp(x)) - exact) / exact);
  }
  CHECK(worst < 2e-7);
  CHECK(vector_exp(0.0f) == 1.0f);
  CHECK(vector_exp(-1000.0f) == vector_exp(-87.0f));
  CHECK(std::isfinite(vector_exp(1000.0f)));
  CHECK(std::isnan(vector_exp(std::nanf(""))));
}

TEST_CASE("vector_erf is within 5e-7 of erf") {
  double worst = 0.0;
  for (int i = -600000; i <= 600000; ++i) {
    const float x = static_cast<float>(i) * 1e-5f;
    worst = std::max(worst, std::abs(static_cast<double>(vector_erf(x)) - std::erf(static_cast<double>(x))));
  }
  CHECK(worst < 5e-7);
  CHECK(vector_erf(0.0f) == 0.0f);
  CHECK(vector_erf(100.0f) == -vector_erf(-100.0f));
  CHECK(std::isnan(vector_erf(std::nanf(""))));
}

// Peaks and quantiles of what was measured.
#include "apps/measure/peak.h"
#include "apps/measure/quantile.h"
#include "tandem/core/out.h"
#include "tandem/core/parallel.h"
#include "tandem/kernels/gemm/linear.h"
#include "tests/support/catch.h"

#include <algorithm>
#include <chrono>

using tandem::Tensor;

TEST_CASE("the measured peak is one that products of matrices do not beat") {
  // Large enough to run at full speed, small enough for a few milliseconds, which other programs miss now and then.
  constexpr std::int64_t kSize = 512;
  const Tensor a = Tensor::full({kSize, kSize}, 0.5), b = Tensor::full({kSize, kSize}, 0.25);
  const Tensor product = Tensor::zeros({kSize, kSize});
  const int threads = tandem::num_threads();
  tandem::set_num_threads(1);
  double best_seconds = 1e9, peak = 0.0;
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 20; ++i) {
      const auto start = std::chrono::steady_clock::now();
      tandem::kernels::linear_forward(a, b, {}, false, tandem::Out(product));
      best_seconds =
          std::min(best_seconds, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    }
    peak = std::max(peak, tandem::apps::measure_peak_flops(1));
  }
  tandem::set_num_threads(threads);
  const double rate = 2.0 * kSize * kSize * kSize / best_seconds;
  INFO("peak " << 1e-9 * peak << " GFLOP/s, products " << 1e-9 * rate);
  CHECK(peak >= 0.9 * rate);
}

TEST_CASE("quantiles lie between neighbours") {
  using tandem::apps::quantile;
  CHECK(quantile({}, 0.5) == 0.0);
  CHECK(quantile({3.0}, 0.9) == 3.0);
  CHECK(tandem::apps::median({4.0, 1.0, 3.0}) == 3.0);
  CHECK(tandem::apps::median({4.0, 1.0, 3.0, 2.0}) == 2.5);
  CHECK(quantile({10.0, 20.0, 30.0, 40.0, 50.0}, 0.1) == Approx(14.0));
  CHECK(quantile({10.0, 20.0}, 1.0) == 20.0);
}

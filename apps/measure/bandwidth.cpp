// The copy loop.
#include "apps/measure/bandwidth.h"

#include "tandem/core/parallel.h"
#include "tandem/kernels/gemm/scratch.h"
#include "tandem/kernels/gemm/simd.h"

#include <algorithm>
#include <chrono>

namespace tandem::apps {

namespace {

constexpr std::int64_t kFloats = std::int64_t{32} << 20;  // 128 MiB: more than caches hold
constexpr int kRounds = 12;

void copy_past_caches(const float* from, float* to) {
  parallel_for(kFloats / kernels::simd::kLanes, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
      kernels::simd::stream(to + i * kernels::simd::kLanes, kernels::simd::load(from + i * kernels::simd::kLanes));
    kernels::simd::finish_streams();
  });
}

}  // namespace

double measure_bandwidth(int threads) {
  using Clock = std::chrono::steady_clock;
  const int threads_before = num_threads();
  set_num_threads(threads);
  const kernels::Scratch from(kFloats), to(kFloats);
  std::fill_n(from.data(), kFloats, 1.0F);
  copy_past_caches(from.data(), to.data());  // takes the pages
  double best = 0.0;
  for (int round = 0; round < kRounds; ++round) {
    const Clock::time_point start = Clock::now();
    copy_past_caches(from.data(), to.data());
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    best = std::max(best, 2.0 * kFloats * sizeof(float) / seconds);
  }
  set_num_threads(threads_before);
  return best;
}

}  // namespace tandem::apps

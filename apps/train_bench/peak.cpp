// The multiply-add loop.
#include "apps/train_bench/peak.h"

#include "kernels/gemm/simd.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <thread>
#include <vector>

namespace tandem::apps {

namespace {

using kernels::simd::Vec;

constexpr int kChains = 12;  // enough to hide the latency of two units, few enough for 16 registers
constexpr std::int64_t kIterations = 4'000'000;
constexpr int kRuns = 7;

float multiply_add_loop(std::int64_t iterations) {
  std::array<Vec, kChains> sums{};
  Vec factor = kernels::simd::broadcast(0.999F), term = kernels::simd::broadcast(0.001F);
  for (std::int64_t i = 0; i < iterations; ++i) {
    for (Vec& sum : sums) sum = sum * factor + term;
    asm volatile("" : "+x"(factor), "+x"(term));  // keeps the loop from being computed at once
  }
  Vec total{};
  for (const Vec& sum : sums) total += sum;
  return total[0];
}

}  // namespace

double measure_peak_flops(int threads) {
  const double flops = 2.0 * kChains * kernels::simd::kLanes * static_cast<double>(kIterations) * threads;
  double best = 0.0;
  std::vector<float> results(static_cast<std::size_t>(threads));
  for (int run = 0; run < kRuns; ++run) {
    const auto start = std::chrono::steady_clock::now();
    std::vector<std::jthread> workers;
    for (float& result : results) workers.emplace_back([&result] { result = multiply_add_loop(kIterations); });
    workers.clear();  // joins
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    best = std::max(best, flops / seconds);
  }
  return best;
}

}  // namespace tandem::apps

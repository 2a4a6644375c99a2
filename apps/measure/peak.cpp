// The multiply-add loop.
#include "apps/measure/peak.h"

#include "tandem/kernels/gemm/simd.h"

#include <algorithm>
#include <array>
#include <barrier>
#include <chrono>
#include <thread>
#include <vector>

namespace tandem::apps {

namespace {

using kernels::simd::Vec;

constexpr int kChains = 12;                    // enough to hide the latency of two units, few enough for 16 registers
constexpr std::int64_t kIterations = 500'000;  // a millisecond: other programs then miss some of the rounds
constexpr int kRounds = 200;

float multiply_add_loop(std::int64_t iterations) {
  std::array<Vec, kChains> sums{};
  for (Vec& sum : sums) asm volatile("" : "+x"(sum));  // else the compiler sees that they stay equal, and keeps one
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
  using Clock = std::chrono::steady_clock;
  Clock::duration best = Clock::duration::max();
  Clock::time_point start = Clock::now();
  bool running = false;
  // Runs as soon as all threads have arrived: at the start and at the end of each round.
  std::barrier gate(threads, [&]() noexcept {
    const Clock::time_point now = Clock::now();
    if (running) best = std::min(best, now - start);
    start = now;
    running = true;
  });
  std::vector<float> results(static_cast<std::size_t>(threads));
  std::vector<std::jthread> workers;
  for (float& result : results) {
    workers.emplace_back([&] {
      gate.arrive_and_wait();
      for (int round = 0; round < kRounds; ++round) {
        result += multiply_add_loop(kIterations);
        gate.arrive_and_wait();
      }
    });
  }
  workers.clear();  // joins
  const double flops = 2.0 * kChains * kernels::simd::kLanes * static_cast<double>(kIterations) * threads;
  return flops / std::chrono::duration<double>(best).count();
}

}  // namespace tandem::apps

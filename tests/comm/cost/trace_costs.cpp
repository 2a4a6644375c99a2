// Measures what a timeline costs an all-reduce: turns with and without one, by turns.
//   mpirun -np 2 trace_costs ALGORITHM BYTES ROUNDS      auto, ring, ...; ranks are the processes
//   trace_costs ALGORITHM BYTES ROUNDS RANKS             ranks are threads
// Prints the median time of both, in microseconds, and the median ratio of neighbours.
#include "tandem/comm/backends/threads/thread_ranks.h"
#include "tandem/comm/launch/mpi_environment.h"
#include "tandem/comm/process_group.h"
#include "tandem/core/error.h"
#include "tandem/core/number_text.h"
#include "tandem/core/out.h"
#include "tandem/core/timeline.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string_view>
#include <vector>

using namespace tandem;

namespace {

/// Seconds of one all-reduce, on the slowest rank.
double turn(comm::ProcessGroup& group, const Tensor& tensor, int repeats) {
  group.barrier();
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < repeats; ++i) group.all_reduce(Out(tensor));
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
  const Tensor slowest = Tensor::full({1}, elapsed.count(), {.dtype = DType::f64});
  group.all_reduce(Out(slowest), comm::ReduceOp::max);
  return slowest.item() / repeats;
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

void measure(comm::ProcessGroup& group, bool has_own_timeline, const Tensor& tensor, std::string_view kind,
             std::int64_t rounds) {
  const std::int64_t bytes = tensor.numel() * size_of(tensor.dtype());
  const int repeats = static_cast<int>(std::clamp<std::int64_t>((std::int64_t{8} << 20) / bytes, 4, 100));
  turn(group, tensor, repeats);
  std::vector<double> off, on, ratios;
  for (std::int64_t round = 0; round < rounds; ++round) {
    double seconds[2] = {};
    for (int half = 0; half < 2; ++half) {
      const bool records = (round + half) % 2 == 0;  // each is as often first
      group.barrier();
      if (records && has_own_timeline) start_timeline();
      seconds[records ? 1 : 0] = turn(group, tensor, repeats);
      group.barrier();
      if (records && has_own_timeline) stop_timeline();
    }
    off.push_back(seconds[0]);
    on.push_back(seconds[1]);
    ratios.push_back(seconds[1] / seconds[0]);
  }
  if (group.rank() == 0)
    fmt::print("{} bytes of {} memory on {} ranks by {}: {:.2f} us without, {:.2f} us with a timeline; ratio {:.4f}\n",
               bytes, kind, group.size(), group.algorithm(), 1e6 * median(off), 1e6 * median(on), median(ratios));
}

void measure_both(comm::ProcessGroup& group, bool has_own_timeline, std::int64_t bytes, std::int64_t rounds) {
  measure(group, has_own_timeline, Tensor::zeros({bytes / 4}), "plain", rounds);
  if (group.algorithm() == "shared-memory")
    measure(group, has_own_timeline, group.shared_zeros({bytes / 4}), "shared", rounds);
}

std::int64_t number(const char* text) {
  const auto value = parse_number<std::int64_t>(text);
  require(value && *value > 0, "trace_costs: {} is not a number above 0", text);
  return *value;
}

}  // namespace

int main(int argc, char** argv) {
  return comm::run_program([&](comm::MpiEnvironment& environment) {
    require(argc == 4 || argc == 5, "usage: trace_costs ALGORITHM BYTES ROUNDS [RANKS]");
    const std::int64_t bytes = number(argv[2]), rounds = number(argv[3]);
    if (argc == 4) {
      const auto group = comm::make_process_group({.backend = "native", .algorithm = argv[1]}, environment);
      measure_both(*group, true, bytes, rounds);
      return 0;
    }
    // They share a timeline.
    comm::run_thread_ranks(static_cast<int>(number(argv[4])), comm::native_options("threads", argv[1]),
                           [&](comm::ProcessGroup& group) { measure_both(group, group.rank() == 0, bytes, rounds); });
    return 0;
  });
}

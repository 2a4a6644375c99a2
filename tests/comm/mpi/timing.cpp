// How long all-reduces take, on request: mpirun -np 2 --bind-to none tandem_comm_mpi_tests "[.timing]"
#include "tandem/comm/backends/backend.h"
#include "tests/comm/mpi/mpi_test.h"

#include <algorithm>
#include <chrono>
#include <cstdio>

using namespace tandem;
using namespace tandem::comm;
using namespace tandem::test;

namespace {

/// A group and the tensor that it reduces.
struct Contender {
  const char* name;
  ProcessGroup* group;
  Tensor tensor;
  std::vector<double> seconds = {};  // by round, of the slowest rank
};

void time_round(Contender& contender) {
  const int repeats = static_cast<int>(std::clamp<std::int64_t>((1 << 22) / (contender.tensor.numel() + 1), 1, 200));
  ProcessGroup& group = *contender.group;
  group.barrier();
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < repeats; ++i) group.all_reduce(Out(contender.tensor));
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  const Tensor slowest = Tensor::full({1}, elapsed.count() / repeats, {DType::f64});
  group.all_reduce(Out(slowest), ReduceOp::max);
  contender.seconds.push_back(slowest.item());
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

}  // namespace

TEST_CASE("all-reduce times of mpi and native: messages, private and shared tensors", "[.timing]") {
  constexpr int kRounds = 9;
  const auto mpi = make_process_group("mpi", environment()), native = make_process_group("native", environment());
  const auto messages = make_message_group();
  if (mpi->rank() == 0)
    std::printf("microseconds of the slowest rank, f32 sum: median of %d interleaved rounds (least)\n%12s", kRounds,
                "bytes");
  for (std::int64_t bytes = 4; bytes <= 64 << 20; bytes *= 4) {
    const std::int64_t count = bytes / 4;
    Contender contenders[] = {{"mpi", mpi.get(), Tensor::zeros({count})},
                              {"messages", messages.get(), Tensor::zeros({count})},
                              {"private", native.get(), Tensor::zeros({count})},
                              {"shared", native.get(), native->shared_zeros({count})}};
    if (bytes == 4 && mpi->rank() == 0) {
      for (const Contender& contender : contenders) std::printf(" %20s", contender.name);
      std::printf("\n");
    }
    for (int round = 0; round < kRounds; ++round)
      for (Contender& contender : contenders) time_round(contender);
    if (mpi->rank() > 0) continue;
    std::printf("%12lld", static_cast<long long>(bytes));
    for (const Contender& contender : contenders)
      std::printf(" %9.1f %10s", median(contender.seconds) * 1e6,
                  fmt::format("({:.1f})", *std::ranges::min_element(contender.seconds) * 1e6).c_str());
    std::printf("\n");
    std::fflush(stdout);
  }
}

// How long all-reduces take, on request: mpirun -np 2 tandem_comm_mpi_tests "[.timing]"
#include "tandem/comm/backends/backend.h"
#include "tests/comm/mpi/mpi_test.h"

#include <algorithm>
#include <chrono>
#include <cstdio>

using namespace tandem;
using namespace tandem::comm;
using namespace tandem::test;

namespace {

/// Median, over rounds, of the slowest rank's seconds.
double seconds_of(ProcessGroup& group, const Tensor& tensor) {
  const int repeats = static_cast<int>(std::clamp<std::int64_t>((1 << 22) / (tensor.numel() + 1), 1, 200));
  std::vector<double> seconds;
  for (int round = 0; round < 7; ++round) {
    group.barrier();
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < repeats; ++i) group.all_reduce(Out(tensor), ReduceOp::max);
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    const Tensor slowest = Tensor::full({1}, elapsed.count() / repeats, {DType::f64});
    group.all_reduce(Out(slowest), ReduceOp::max);
    seconds.push_back(slowest.item());
  }
  std::nth_element(seconds.begin(), seconds.begin() + 3, seconds.end());
  return seconds[3];
}

}  // namespace

TEST_CASE("all-reduce times of the mpi and native backends", "[.timing]") {
  const auto mpi = make_process_group("mpi", environment()), native = make_process_group("native", environment());
  if (mpi->rank() == 0) std::printf("%12s %12s %12s %10s\n", "bytes", "mpi us", "native us", "mpi/native");
  for (std::int64_t bytes = 64; bytes <= 64 << 20; bytes *= 4) {
    const Tensor tensor = Tensor::zeros({bytes / 4});
    const double mpi_seconds = seconds_of(*mpi, tensor), native_seconds = seconds_of(*native, tensor);
    if (mpi->rank() == 0) {
      std::printf("%12lld %12.1f %12.1f %10.2f\n", static_cast<long long>(bytes), mpi_seconds * 1e6,
                  native_seconds * 1e6, mpi_seconds / native_seconds);
    }
  }
}

// A program that ends in one of several ways, for tests of exit codes and error lines: exit_program WAY.
#include "tandem/comm/agreement.h"
#include "tandem/comm/launch/mpi_environment.h"
#include "tandem/comm/launch/threads.h"
#include "tandem/core/cpu_allocator.h"
#include "tests/comm/refuse_reading.h"
#include "tests/support/limit_scope.h"

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

using namespace tandem;
using namespace tandem::comm;
using tandem::test::refuse_reading;

// What a rank may still have when MPI ends.
std::unique_ptr<ProcessGroup> kept_group;
std::unique_ptr<Work> kept_work;
#if defined(__linux__)
std::optional<tandem::test::LimitScope> kept_limit;
#endif

namespace {

/// On the first GPU, by which way the ranks say, and then that the sum is right.
int sum_on_gpus(MpiEnvironment& environment, const std::string& way) {
  const Device gpu{DeviceType::cuda, 0};
  const bool is_on_cpu = way == "devices-one-on-cpu" && environment.rank() == 1;
  {
    const auto group = make_process_group({.backend = "native", .device = is_on_cpu ? Device{} : gpu}, environment);
    if (group->rank() == 0 && !group->notice().empty()) std::printf("note: %s\n", group->notice().c_str());
    const bool is_given_on_cpu = way == "devices-mixed" && environment.rank() == 1;
    const Tensor mine =
        Tensor::full({1000}, 1.0 + group->rank(), {.device = is_on_cpu || is_given_on_cpu ? Device{} : gpu});
    try {
      group->all_reduce(Out(mine));
    } catch (const Error&) {
      if (is_given_on_cpu) std::this_thread::sleep_for(std::chrono::minutes(1));  // until the launcher ends it
      throw;
    }
    const int ranks = group->size();
    require(mine.to_vector<float>().back() == static_cast<float>(ranks * (ranks + 1) / 2), "a wrong sum");
    if (group->rank() == 0) std::printf("the sum is right\n");
  }
  return 0;
}

/// From now on this process has a limit with which it shares no blocks.
void limit_files() {
#if defined(__linux__)
  kept_limit.emplace(RLIMIT_FSIZE, std::int64_t{1} << 40);
#endif
}

/// From now on the system gives this process few addresses more.
void map_no_more() {
#if defined(__linux__)
  kept_limit.emplace(RLIMIT_AS, tandem::test::mapped_bytes() + (1 << 20));
#endif
}

}  // namespace

int main(int argc, char** argv) {
  const std::string way = argc > 1 ? argv[1] : "";
  return run_program([&](MpiEnvironment& environment) {
    if (way == "refused") refuse_reading();
    // Made before the group, it is in no block that others map.
    const Tensor early = way.starts_with("refused") ? Tensor::full({1 << 20}, 1.0 + environment.rank()) : Tensor();
    if (way == "own-wish" && environment.rank() == 1) setenv("TANDEM_SINGLE_COPY", "sometimes", 1);
    const std::string one = "devices-one-";
    if (way.starts_with(one) && way != one + "on-cpu" && environment.rank() == 1)
      setenv("TANDEM_SIMULATOR_IPC", way == one + "refused" ? "off" : way.substr(one.size()).c_str(), 1);
    if (way.starts_with("devices")) return sum_on_gpus(environment, way);
    if (way == "unshared" && environment.rank() == 1) limit_files();
    if (way == "self") make_process_group("self", environment);
    auto group = make_process_group("auto", environment);
    if (way == "keeps-work") {
      auto work = group->all_reduce_async(Out(Tensor::zeros({4})));
      work->wait();
      if (group->rank() == 1) kept_work = std::move(work);
    }
    if (way == "agreed") run_agreed(*group, [&] { require(group->rank() == 0, "no such file: train.bin"); });
    if (way == "lone" && group->rank() == group->size() - 1) fail("label 12 is out of range");
    if (way == "in-flight" && group->rank() == group->size() - 1) {
      const auto work = group->all_reduce_async(Out(Tensor::zeros({1 << 20})));
      fail("label 12 is out of range");
    }
    if (way == "threaded") {
      const auto moved =
          make_process_group({.backend = "native", .algorithm = "ring", .progress = "thread"}, environment);
      const auto work = moved->all_reduce_async(Out(Tensor::zeros({1 << 20})));
      if (group->rank() == group->size() - 1) fail("label 12 is out of range");
      std::this_thread::sleep_for(std::chrono::minutes(1));  // until the launcher ends it
    }
    if (way == "dropped") {
      {
        const auto other = make_process_group("mpi", environment);
        const auto work = other->all_reduce_async(Out(Tensor::zeros({1 << 20})));
      }
      const Tensor ones = Tensor::full({4}, 1.0);
      make_process_group("mpi", environment)->all_reduce(Out(ones));
      require(ones.to_vector<float>().front() == static_cast<float>(group->size()), "a wrong sum");
    }
    if (way == "lone" || way == "in-flight") group->all_reduce(Out(Tensor::zeros({1 << 20})));  // would wait for ever
    if (way == "refused-later") refuse_reading();
    if (way.starts_with("refused")) {
      const Tensor all = group->all_gather(early);
      for (int rank = 0; rank < group->size(); ++rank)
        require(all.select(0, rank).narrow(0, (1 << 20) - 1, 1).item() == 1.0 + rank, "wrong elements of rank {}",
                rank);
      group->all_gather(early);  // says nothing more
    }
    if (way == "unmapped") {
      if (const std::string obstacle = group->sharing_obstacle(); !obstacle.empty()) {
        if (group->rank() == 0) std::printf("skipped: %s\n", obstacle.c_str());
        return 77;
      }
      const Tensor tensor = Tensor::full({1 << 20}, 1.0);
      group->barrier();
      if (group->rank() == 1) map_no_more();
      try {
        group->all_reduce(Out(tensor));
      } catch (const Error&) {
        if (group->rank() != 1) std::this_thread::sleep_for(std::chrono::minutes(1));  // until the launcher ends it
        throw;
      }
    }
    if (way == "unshared") {
      const Tensor tensor = Tensor::full({1 << 20}, 1.0), shared = group->shared_zeros({1 << 20});
      group->all_reduce(Out(tensor));
      group->all_reduce(tensor, Out(shared));
      require(shared.to_vector<float>().back() == static_cast<float>(group->size() * group->size()), "a wrong sum");
      if (group->rank() == 1) std::printf("no blocks: %d\n", cpu_allocator().shared_file());
    }
    if (way == "threads") {
      const int threads = default_threads(*group);
      for (int rank = 0; rank < group->size(); ++rank) {
        group->barrier();
        if (rank == group->rank())
          std::printf("rank %d of %d: %d threads on %zu cores\n", rank, group->size(), threads, allowed_cores().size());
      }
    }
    if (way == "keeps-group" && group->rank() == 1) kept_group = std::move(group);
    return 0;
  });
}

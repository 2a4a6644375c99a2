// A program one of whose ranks does not do its part, for tests of who is named: hang_program BACKEND ALGORITHM TIMEOUT
// CHECKS WAY [no-reading | device]. Rank 1 of three is the one. With no-reading the system lets no rank read another's
// memory; with device all tensors are on the first GPU.
// Each rank prints its process at the start, and "rank R ended" at the end.
#include "tandem/comm/launch/mpi_environment.h"
#include "tandem/comm/process_group.h"
#include "tandem/core/module_scope.h"
#include "tandem/core/profiler.h"
#include "tests/comm/refuse_reading.h"

#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

using namespace tandem;
using namespace tandem::comm;

namespace {

constexpr int kCulprit = 1;

Device device;  // where tensors are

Tensor full(std::int64_t count, double value, DType dtype = DType::f32) {
  return Tensor::full({count}, value, {.dtype = dtype, .device = device});
}

/// Sums, and a broadcast of what ranks read in each other's memory where they may.
void take_steps(ProcessGroup& group, int steps) {
  const Tensor x = full(1000, 1.0), large = full(2'000'000, group.rank() + 1.0);
  for (int step = 0; step < steps; ++step) group.all_reduce(Out(x), ReduceOp::average);
  group.broadcast(Out(large));
  require(large.to_vector<float>().back() == 1.0F, "rank {}: a broadcast that did not arrive", group.rank());
}

/// For each of three ranks.
Tensor parts_of(std::int64_t count) { return Tensor::full({3, count}, 1.0, {.device = device}); }

/// Computes for ever.
void compute() {
  const detail::PathScope module("features.7");
  const ProfileRange range("backward conv2d");
  for (volatile bool for_ever = true; for_ever;) continue;
}

/// What rank 1 does in place of a sum, in which the others wait.
void misbehave(ProcessGroup& group, const std::string& way) {
  const Tensor x = full(1000, 1.0);
  if (way == "killed") raise(SIGKILL);
  if (way == "exits") _exit(0);
  if (way == "throws") throw std::runtime_error("label 12 is out of range");
  if (way == "stopped") raise(SIGSTOP);
  if (way == "computes") compute();
  if (way == "root") group.broadcast(Out(x), 2);
  if (way == "count") group.all_reduce(Out(full(999, 1.0)));
  if (way == "dtype") group.all_reduce(Out(full(1000, 1.0, DType::i32)));
  if (way == "order") group.broadcast(Out(x));
  if (way == "message") group.receive(Out(full(999, 1.0)), 0);
  if (way == "parts") group.all_to_all(parts_of(999));
  if (way == "receive") group.receive(Out(x), 0);
  if (way == "group") compute();
  if (way == "chain") raise(SIGSTOP);
  if (way == "waits") group.receive(Out(x), 0);  // and is stopped there
  if (way == "many") raise(SIGKILL);
  if (way == "tags") group.receive(Out(full(2'000'000, 1.0)), 0, 4);
}

/// What the others do meanwhile.
void behave(ProcessGroup& group, const std::string& way, const std::vector<std::string>& processes) {
  const Tensor x = full(1000, 1.0);
  std::vector<Tensor> tensors;
  std::vector<std::unique_ptr<Work>> works;
  for (int i = 0; way == "many" && i < 70; ++i) {
    tensors.push_back(x.clone());
    works.push_back(group.all_reduce_async(Out(tensors.back())));
  }
  for (const auto& work : works) work->wait();
  if (group.rank() == 2 && (way == "chain" || way == "waits"))  // the others wait for longer
    std::this_thread::sleep_for(std::chrono::milliseconds(way == "chain" ? 300 : 5000));
  if (way == "chain") group.receive(Out(x), group.rank() == 0 ? 2 : kCulprit);
  if (way == "waits" && group.rank() == 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    kill(static_cast<pid_t>(std::stoi(processes[kCulprit])), SIGSTOP);
    group.receive(Out(x), kCulprit);
  }
  if (way == "root")
    group.broadcast(Out(x), 0);
  else if (way == "parts")
    group.all_to_all(parts_of(1000));
  else if (way == "tags" && group.rank() == 0)
    group.send(full(2'000'000, 1.0), 1, 3);
  else if (way == "message" && group.rank() == 0)
    group.send(x, 1);
  else if (way == "message")  // has no part in it, and would wait for those that end
    std::this_thread::sleep_for(std::chrono::seconds(2));
  else
    group.all_reduce(Out(x));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6 && argc != 7) return 64;
  const std::string way = argv[5];
  const std::string more = argc == 7 ? argv[6] : "";
  if (more == "no-reading") test::refuse_reading();
  if (more == "device") device = {DeviceType::cuda, 0};
  return run_program([&](MpiEnvironment& environment) {
    const auto group = make_process_group({.backend = argv[1],
                                           .device = device,
                                           .algorithm = argv[2],
                                           .timeout = std::atof(argv[3]),
                                           .checks = std::string(argv[4]) == "checks"},
                                          environment);
    std::printf("rank %d is process %d\n", group->rank(), static_cast<int>(getpid()));
    std::fflush(stdout);
    take_steps(*group, 5);
    const std::vector<std::string> processes = group->all_gather_bytes(std::to_string(getpid()));
    // Of ranks 1 and 0, in this order, and of rank 2. In the one way they wait in it, in the other one it is just
    // there.
    const auto part = way == "group" || way == "receive" ? group->split(group->rank() / 2, -group->rank()) : nullptr;
    if (way == "group" && group->rank() == 0) part->all_reduce(Out(full(1000, 1.0)));
    if (way == "cycle") {
      const Tensor x = full(1000, 1.0);
      group->receive(Out(x), (group->rank() + 1) % group->size());
    }
    if (way == "returns" && group->rank() == kCulprit) return 0;
    if (group->rank() == kCulprit) misbehave(*group, way);
    if (way != "stays") behave(*group, way, processes);
    take_steps(*group, 5);
    if (way == "stays" && group->rank() == kCulprit) raise(SIGSTOP);
    std::printf("rank %d ended\n", group->rank());
    return 0;
  });
}

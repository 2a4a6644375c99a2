// fault_probe: runs one planted fault, or the correct kernels, for compute-sanitizer to look at.
#include "core/cuda/check.h"
#include "core/error.h"
#include "tests/simulator/correct_kernels.h"
#include "tests/simulator/planted_fault.h"

#include <fmt/core.h>

#include <algorithm>
#include <span>

namespace tandem::test {
namespace {

/// Which tool sees which faults, by compute-sanitizer's manual: racecheck looks at shared memory only, initcheck at
/// global memory only, and no tool follows streams, blocks or the masks of shuffles.
struct Tool {
  const char* name;
  std::vector<const char*> faults;
};
const std::vector<Tool> kTools = {
    {"memcheck",
     {"write past the end", "read before the start", "shared array too short", "dynamic shared memory too small",
      "freed memory is read", "memcpy past the end", "struct copied past the end", "vector at an odd address", "cast to a wider type", "atomic past the end"}},
    {"racecheck",
     {"barrier missing before a read", "barrier missing before the next write", "all threads write one variable",
      "__syncwarp missing", "a shuffle does not order memory", "only half of the warp was synchronised"}},
    {"initcheck", {"global memory nobody wrote"}},
    {"synccheck", {"barrier in a branch", "caller of __syncwarp not in its mask"}},
};

const PlantedFault& find(const std::string& name) {
  const std::vector<PlantedFault>& faults = planted_faults();
  const auto found = std::find_if(faults.begin(), faults.end(), [&](const PlantedFault& f) { return f.name == name; });
  require(found != faults.end(), "no planted fault is called '{}'; --list shows those that compute-sanitizer can see",
          name);
  return *found;
}

void list() {
  for (const Tool& tool : kTools) {
    for (const char* fault : tool.faults) fmt::print("{}\t{}\n", tool.name, find(fault).name);
  }
}

void run_correct_kernels() {
  for (const CorrectKernel& kernel : correct_kernels()) {
    require(kernel.run() == kernel.expected(), "the correct kernel '{}' gave wrong numbers", kernel.name);
  }
}

int run(std::span<char*> arguments) {
  if (arguments.size() != 2) {
    fmt::print(stderr, "usage: fault_probe NAME | --correct | --list\n");
    return 2;
  }
  const std::string what = arguments[1];
  if (what == "--list") {
    list();
  } else if (what == "--correct") {
    run_correct_kernels();
  } else {
    find(what).run();
    TANDEM_CUDA_CHECK(cudaDeviceSynchronize());
  }
  return 0;
}

}  // namespace
}  // namespace tandem::test

int main(int argc, char** argv) {
  try {
    return tandem::test::run({argv, static_cast<std::size_t>(argc)});
  } catch (const std::exception& error) {
    fmt::print(stderr, "fault_probe: {}\n", error.what());
    return 1;
  }
}

// fault_probe: runs one planted fault, or the correct kernels, for compute-sanitizer to look at.
#include "tandem/core/cuda/check.h"
#include "tandem/core/error.h"
#include "tests/simulator/correct_kernels.h"
#include "tests/simulator/planted_fault.h"

#include <fmt/core.h>

#include <algorithm>
#include <string_view>

namespace tandem::test {
namespace {

/// Which tool sees which faults, by compute-sanitizer's manual and on an H100: racecheck looks at shared memory only
/// and takes a shuffle for an order, initcheck looks at global memory only, and no tool follows streams, blocks or the
/// masks of shuffles. A float2 by a cast is not here either: with -G nvcc loads its two floats one by one, each where
/// it may be.
struct Tool {
  const char* name;
  std::vector<const char*> faults;
};
const std::vector<Tool> kTools = {
    {"memcheck",
     {"write past the end", "read before the start", "shared array too short", "dynamic shared memory too small",
      "freed memory is read", "memcpy past the end", "struct copied past the end", "vector at an odd address",
      "atomic past the end"}},
    {"racecheck",
     {"barrier missing before a read", "barrier missing before the next write", "all threads write one variable",
      "__syncwarp missing", "only half of the warp was synchronised"}},
    {"initcheck", {"global memory nobody wrote"}},
    {"synccheck", {"barrier in a branch", "caller of __syncwarp not in its mask"}},
};

struct Usage {};

/// Checks the name of a tool; without one, anything goes.
void check_tool(std::string_view tool) {
  const auto is_called = [&](const Tool& known) { return known.name == tool; };
  require(tool.empty() || std::any_of(kTools.begin(), kTools.end(), is_called),
          "compute-sanitizer has no tool '{}'; choose memcheck, racecheck, initcheck or synccheck", tool);
}

const PlantedFault& find(std::string_view name) {
  const std::vector<PlantedFault>& faults = planted_faults();
  const auto found = std::find_if(faults.begin(), faults.end(), [&](const PlantedFault& f) { return f.name == name; });
  require(found != faults.end(), "no planted fault is called '{}'; --list shows those that compute-sanitizer can see",
          name);
  return *found;
}

void list(std::string_view only) {
  for (const Tool& tool : kTools) {
    if (!only.empty() && only != tool.name) continue;
    for (const char* fault : tool.faults) fmt::print("{}\t{}\n", tool.name, find(fault).name);
  }
}

void run_correct_kernels(std::string_view tool) {
  for (const CorrectKernel& kernel : correct_kernels()) {
    const auto left_out = std::find_if(kernel.left_out.begin(), kernel.left_out.end(),
                                       [&](const LeftOut& one) { return one.tool == tool; });
    if (left_out != kernel.left_out.end()) {
      fmt::print("left out for {}: {} ({})\n", tool, kernel.name, left_out->why);
      continue;
    }
    require(kernel.run() == kernel.expected(), "the correct kernel '{}' gave wrong numbers", kernel.name);
  }
}

void run(std::vector<std::string_view> arguments) {
  std::string_view tool;
  if (arguments.size() == 3 && arguments[0] == "--tool") {
    tool = arguments[1];
    arguments.erase(arguments.begin(), arguments.begin() + 2);
  }
  if (arguments.size() != 1) throw Usage{};
  check_tool(tool);
  if (arguments[0] == "--list") {
    list(tool);
  } else if (arguments[0] == "--correct") {
    run_correct_kernels(tool);
  } else if (!tool.empty() || arguments[0].starts_with("--")) {
    throw Usage{};
  } else {
    find(arguments[0]).run();
    TANDEM_CHECK_CUDA(cudaDeviceSynchronize());
  }
}

}  // namespace
}  // namespace tandem::test

int main(int argc, char** argv) {
  try {
    tandem::test::run({argv + 1, argv + argc});
    return 0;
  } catch (const tandem::test::Usage&) {
    fmt::print(stderr,
               "usage: fault_probe NAME | [--tool TOOL] --correct | [--tool TOOL] --list\n"
               "  --correct  runs the kernels without faults; for a tool, those that it may look at\n");
    return 2;
  } catch (const std::exception& error) {
    fmt::print(stderr, "fault_probe: {}\n", error.what());
    return 1;
  }
}

// Running kernels under the simulator's lint: how many sectors and wavefronts their requests took, and how few could
// do.
#pragma once

#include "tandem/core/tensor.h"
#include "tandem/simulator/lint.h"
#include "tests/support/cuda_device.h"

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace tandem::test {

/// What one kernel moved in one kind of memory; see simulator::LintEntry.
struct Traffic {
  std::uint64_t requests = 0, moved = 0, ideal = 0;

  double ratio() const { return ideal == 0 ? 1.0 : static_cast<double>(moved) / static_cast<double>(ideal); }

  Traffic& operator+=(const Traffic& more) {
    requests += more.requests;
    moved += more.moved;
    ideal += more.ideal;
    return *this;
  }
  Traffic& operator-=(const Traffic& less) {
    requests -= less.requests;
    moved -= less.moved;
    ideal -= less.ideal;
    return *this;
  }
};

/// Global memory in sectors, shared memory in wavefronts.
struct KernelTraffic {
  Traffic global, shared;
  std::vector<std::pair<std::string, Traffic>> lines;  // where it comes from
  std::map<std::string, std::uint64_t> sectors_read;   // of global memory, by file of source, without its folders
};

/// By short name, without namespaces and template arguments.
using TrafficOfKernels = std::map<std::string, KernelTraffic>;

/// What the kernels that `work` launches move.
TrafficOfKernels traffic_of(const std::function<void()>& work);

/// One piece of work with its inputs ready.
struct LintCase {
  std::string name;
  std::function<void()> work;
};

/// Cases that are made and run together; `name` is a section of the test, which -c chooses.
struct LintCases {
  std::string name;
  std::vector<LintCase> (*make)();
};

/// Files of this folder add their cases by these, at namespace scope.
struct RegisterLint {
  RegisterLint(const std::string& name, std::vector<LintCase> (*make)()) { all().push_back({name, make}); }
  static std::vector<LintCases>& all();
};

/// Ones on the GPU, images channels_last.
inline Tensor ones(const Shape& shape, DType dtype = DType::f32, Layout layout = Layout::channels_last) {
  return Tensor::full(shape, 1.0, {.dtype = dtype, .layout = layout, .device = kGpu});
}

}  // namespace tandem::test

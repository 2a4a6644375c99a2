// The table of planted faults: tiny kernels that do one thing wrong. The simulator must find all; compute-sanitizer,
// which runs the same kernels on a GPU (fault_probe), those that it can see.
#pragma once

#include "tandem/simulator/fault_kind.h"

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace tandem::test {

/// The statement that is wrong carries the comment "// fault: NAME" on its line.
struct PlantedFault {
  std::string name;
  simulator::FaultKind kind{};
  std::function<void()> run;
  bool needs_checked_accesses = true;  // only the race build can see it
  const char* file = nullptr;
  /// A read that is not ordered after the write it needs may also come before it: then nobody has written yet.
  bool may_read_too_early = false;
};

std::vector<PlantedFault>& planted_faults();

struct PlantFault {
  explicit PlantFault(PlantedFault fault) { planted_faults().push_back(std::move(fault)); }
};

}  // namespace tandem::test

// Kernels without faults, and what they should give.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace tandem::test {

struct CorrectKernel {
  std::string name;
  std::function<std::vector<double>()> run;
  std::function<std::vector<double>()> expected;
};

std::vector<CorrectKernel> correct_kernels();

}  // namespace tandem::test

// Kernels without faults, and what they should give.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace tandem::test {

/// A tool of compute-sanitizer to which a correct kernel is not shown, and why.
struct LeftOut {
  const char* tool;
  const char* why;
};

struct CorrectKernel {
  std::string name;
  std::function<std::vector<double>()> run;
  std::function<std::vector<double>()> expected;
  std::vector<LeftOut> left_out = {};
};

std::vector<CorrectKernel> correct_kernels();

/// The same, of kernels that read the same millions of times: they take seconds.
std::vector<CorrectKernel> long_polling_kernels();

}  // namespace tandem::test

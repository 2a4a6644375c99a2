// Correct kernels that look dangerous: none may raise an alarm, and all give one result in every order of threads.
#pragma once

#include <functional>
#include <string>
#include <utility>
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

std::vector<CorrectKernel> correct_block_kernels();
std::vector<CorrectKernel> correct_warp_kernels();
std::vector<CorrectKernel> correct_copy_kernels();
std::vector<CorrectKernel> correct_polling_kernels();
std::vector<CorrectKernel> correct_ticket_kernels();

/// All of them.
inline std::vector<CorrectKernel> correct_kernels() {
  std::vector<CorrectKernel> all;
  for (const auto kernels : {correct_block_kernels, correct_warp_kernels, correct_copy_kernels, correct_polling_kernels,
                             correct_ticket_kernels})
    for (CorrectKernel& kernel : kernels()) all.push_back(std::move(kernel));
  return all;
}

/// The same, of kernels that read the same millions of times: they take seconds.
std::vector<CorrectKernel> long_polling_kernels();

}  // namespace tandem::test

// Joining and cutting under the lint: the copies behind concat(), slice() and split(), in both directions.
#include "tandem/core/describe.h"
#include "tests/lint/lint.h"

namespace tandem::test {

namespace {

/// Copies between a tensor and its part, as concat() and split() make them.
void add_copies(std::vector<LintCase>& cases, const std::string& text, const Tensor& part) {
  const Tensor alone = ones(part.shape(), part.dtype());
  cases.push_back({"copy to " + text, [=] { part.copy_from(alone); }});
  cases.push_back({"copy from " + text, [=] { alone.copy_from(part); }});
}

std::vector<LintCase> part_cases() {
  std::vector<LintCase> cases;
  for (const DType dtype : {DType::f32, DType::f16}) {
    const Tensor images = ones({2, 128, 8, 8}, dtype), rows = ones({64, 256}, dtype), three = ones({4, 16, 128}, dtype);
    add_copies(cases, fmt::format("half of the channels of {}", describe(images)), images.narrow(1, 64, 64));
    add_copies(cases, fmt::format("rows in the middle of {}", describe(images)), images.narrow(2, 2, 4));
    add_copies(cases, fmt::format("half of the columns of {}", describe(rows)), rows.narrow(1, 128, 128));
    add_copies(cases, fmt::format("rows of {}", describe(rows)), rows.narrow(0, 16, 32));
    add_copies(cases, fmt::format("every other row of {}", describe(rows)), rows.narrow(0, 0, 32, 2));
    add_copies(cases, fmt::format("the middle dimension of {}", describe(three)), three.narrow(1, 4, 8));
  }
  return cases;
}

const RegisterLint register_parts("parts", part_cases);

}  // namespace

}  // namespace tandem::test

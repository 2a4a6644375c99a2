// The best elements of rows under the lint.
#include "tandem/core/describe.h"
#include "tandem/kernels/reduce/topk.h"
#include "tests/lint/lint.h"

namespace tandem::test {

namespace {

std::vector<LintCase> topk_cases() {
  std::vector<LintCase> cases;
  for (const DType dtype : {DType::f32, DType::f16}) {
    for (const auto& [columns, k] : {std::pair{64, 1}, std::pair{2048, 1}, std::pair{256, 32}, std::pair{2048, 1025}}) {
      const Tensor x = ones({16, columns}, dtype), values = ones({16, k}, dtype), indices = ones({16, k}, DType::i64);
      cases.push_back(
          {fmt::format("topk of {} to {}", describe(x), k), [=] { kernels::topk(x, {}, Out(values), Out(indices)); }});
      if (k == 32)
        cases.push_back({fmt::format("topk_backward of {} to {}", describe(x), k), [=] {
                           kernels::topk(x, {.sorted = false}, {}, Out(indices));
                           kernels::topk_backward(values, indices, Out(x));
                         }});
    }
  }
  return cases;
}

const RegisterLint register_topk("topk", topk_cases);

}  // namespace

}  // namespace tandem::test

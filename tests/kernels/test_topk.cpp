// topk on the CPU: the fast path against comparisons, to the bit.
#include "tandem/core/parallel.h"
#include "tests/kernels/topk_support.h"

namespace tandem::test {

TEST_CASE("topk finds what comparisons find, with ties, infinities and NaN") {
  for (const TopkSize& size :
       {TopkSize{1, 1, 1}, TopkSize{3, 7, 1}, TopkSize{3, 7, 3}, TopkSize{2, 7, 7}, TopkSize{5, 40, 17},
        TopkSize{2, 300, 300}, TopkSize{2, 3000, 1}, TopkSize{2, 3000, 5}, TopkSize{700, 33, 4}}) {
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::f64}) {
      for (const kernels::TopkOptions& options : topk_options()) {
        const Tensor x = ranked_rows(size.rows, size.columns, dtype, 3);
        INFO(describe(x) << ", k " << size.k << ", largest " << options.largest << ", sorted " << options.sorted);
        const std::vector<Tensor> found = topk_of(x, size.k, options);
        const std::vector<Tensor> expected = reference_topk_of(x, size.k, options);
        CHECK(first_other_bits(found[0], expected[0]) == "");
        CHECK(first_other_bits(found[1], expected[1]) == "");
      }
    }
  }
}

TEST_CASE("topk finds the same with any number of threads") {
  const Tensor x = ranked_rows(900, 50, DType::f32, 4);
  const int threads = num_threads();
  set_num_threads(1);
  const std::vector<Tensor> alone = topk_of(x, 9, {});
  set_num_threads(4);
  const std::vector<Tensor> shared = topk_of(x, 9, {});
  set_num_threads(threads);
  CHECK(first_other_bits(shared[0], alone[0]) == "");
  CHECK(first_other_bits(shared[1], alone[1]) == "");
}

}  // namespace tandem::test

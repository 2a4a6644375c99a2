// topk on the GPU against comparisons on the CPU, to the bit: by warps, by blocks, sorted in shared and global memory.
#include "tests/kernels/topk_support.h"
#include "tests/support/cuda_device.h"

namespace tandem::test {

TEST_CASE("on CUDA, topk finds what comparisons find, with ties, infinities and NaN", "[cuda]") {
  if (!has_gpu()) return;
  for (const TopkSize& size :
       {TopkSize{1, 1, 1}, TopkSize{11, 7, 1}, TopkSize{3, 70, 1}, TopkSize{2, 1030, 1}, TopkSize{3, 7, 3},
        TopkSize{2, 7, 7}, TopkSize{3, 300, 33}, TopkSize{1, 300, 300}, TopkSize{2, 1300, 1025}}) {
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
      for (const kernels::TopkOptions& options : topk_options()) {
        if (size.k == 1 && !options.sorted) continue;
        const Tensor x = ranked_rows(size.rows, size.columns, dtype, 3);
        INFO(describe(x) << ", k " << size.k << ", largest " << options.largest << ", sorted " << options.sorted);
        const std::vector<Tensor> found = topk_of(x.to(kGpu), size.k, options);
        const std::vector<Tensor> expected = reference_topk_of(x, size.k, options);
        CHECK(first_other_bits(found[0], expected[0]) == "");
        CHECK(first_other_bits(found[1], expected[1]) == "");
      }
    }
  }
}

TEST_CASE("on CUDA, one row more than the grid has blocks is not forgotten", "[cuda]") {
  if (!has_gpu()) return;
  const Tensor x = ranked_rows(132 * 16 + 3, 3, DType::f32, 5);
  const std::vector<Tensor> found = topk_of(x.to(kGpu), 2, {}), expected = reference_topk_of(x, 2, {});
  CHECK(first_other_bits(found[0], expected[0]) == "");
  CHECK(first_other_bits(found[1], expected[1]) == "");
}

}  // namespace tandem::test

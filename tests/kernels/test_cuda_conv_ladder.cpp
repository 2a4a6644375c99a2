// The steps of the ladder that no op runs, against the reference: like the ones that run, exact on whole numbers.
#include "kernels/conv/ladder/ladder.h"
#include "tests/kernels/cuda_conv_support.h"

namespace tandem::test {
namespace {

namespace k = tandem::kernels;
constexpr ConvPasses kForward{.backward_input = false, .backward_weight = false};

}  // namespace

TEST_CASE("a convolution by tiles in shared memory", "[cuda][conv]") {
  if (!has_gpu()) return;
  const ConvFamily family{"ladder: shared tile", k::cuda::ladder::shared_tile, {}, {}};
  for (const ConvCase& one :
       {square_case(2, 3, 5, 4, 8, 3, 1), square_case(1, 8, 4, 5, 33, 3, 1, 2), square_case(1, 4, 9, 9, 8, 3, 2, 1, 2)})
    for (const DType dtype : kGpuDTypes) check_passes(family, one, dtype, true, true, kForward);
  check_passes(family, square_case(2, 3, 5, 4, 8, 3, 1), DType::f32, false, false, kForward);
}

TEST_CASE("a convolution on tensor cores that waits for its operands", "[cuda][conv]") {
  if (!has_gpu()) return;
  const ConvFamily family{"ladder: tensor cores", k::cuda::ladder::tensor_cores, {}, {}};
  for (const ConvCase& one :
       {square_case(1, 8, 5, 4, 8, 3, 1), square_case(2, 24, 5, 7, 72, 3, 1), square_case(1, 40, 9, 9, 24, 3, 1, 2)})
    for (const DType dtype : {DType::f16, DType::bf16}) check_passes(family, one, dtype, true, true, kForward);
  check_passes(family, square_case(2, 24, 5, 7, 72, 3, 1), DType::bf16, false, false, kForward);
  const ConvCase few = square_case(1, 4, 4, 4, 16, 3, 1);
  const Tensor x = poisoned_on_gpu(few.x(), DType::f16, kLast), w = poisoned_on_gpu(few.weight(), DType::f16, kLast);
  const Tensor y = poisoned_on_gpu(few.y(), DType::f16, kLast);
  CHECK_THAT(error_of([&] { k::cuda::ladder::tensor_cores(few.geometry(), x, w, {}, y); }),
             ContainsText("channels are no multiples of 8"));
}

}  // namespace tandem::test

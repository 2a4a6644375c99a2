// The steps of the ladder that no op runs, against the reference: like the ones that run, exact on whole numbers.
#include "tandem/kernels/conv/ladder/ladder.h"
#include "tests/kernels/cuda_conv_support.h"
#include "tests/support/catch.h"

namespace tandem::test {
namespace {

namespace k = tandem::kernels;
namespace ladder = k::cuda::ladder;

const ConvFamily kSharedTile{"ladder: shared tile", ladder::shared_tile::forward, ladder::shared_tile::backward_input,
                             ladder::shared_tile::backward_weight};
const ConvFamily kTensorCores{"ladder: tensor cores", ladder::tensor_cores::forward,
                              ladder::tensor_cores::backward_input, ladder::tensor_cores::backward_weight};

}  // namespace

TEST_CASE("convolution and its gradients by tiles in shared memory", "[cuda][conv]") {
  if (!has_gpu()) return;
  for (const ConvCase& one :
       {square_case(2, 3, 5, 4, 8, 3, 1), square_case(1, 8, 4, 5, 33, 3, 1, 2), square_case(1, 4, 9, 9, 8, 3, 2, 1, 2)})
    for (const DType dtype : kGpuDTypes) check_passes(kSharedTile, one, dtype, true, one.k % 8 == 0);
  check_passes(kSharedTile, square_case(2, 3, 5, 4, 8, 3, 1), DType::f32, false, false);
}

TEST_CASE("convolution and its gradients on tensor cores that wait for their operands", "[cuda][conv]") {
  if (!has_gpu()) return;
  for (const ConvCase& one :
       {square_case(1, 8, 5, 4, 8, 3, 1), square_case(2, 24, 5, 7, 72, 3, 1), square_case(1, 40, 9, 9, 24, 3, 1, 2)})
    for (const DType dtype : {DType::f16, DType::bf16}) check_passes(kTensorCores, one, dtype, true, true);
  check_passes(kTensorCores, square_case(2, 24, 5, 7, 72, 3, 1), DType::bf16, false, false);
  const ConvCase few = square_case(1, 4, 4, 4, 16, 3, 1);
  const Tensor x = poisoned_on_gpu(few.x(), DType::f16, kLast), w = poisoned_on_gpu(few.weight(), DType::f16, kLast);
  const Tensor y = poisoned_on_gpu(few.y(), DType::f16, kLast);
  const k::ConvGeometry g = few.geometry();
  for (const auto& refused :
       {std::function<void()>([&] { ladder::tensor_cores::forward(g, x, w, {}, Out(y)); }),
        std::function<void()>([&] { ladder::tensor_cores::backward_input(g, y, {}, w, Out(x)); }),
        std::function<void()>([&] { ladder::tensor_cores::backward_weight(g, x, y, {}, Out(w)); })})
    CHECK_THAT(error_of(refused), ContainsText("channels are no multiples of 8"));
}

}  // namespace tandem::test

// Sums of loss and accuracy: what a GPU refuses.
#include "tandem/kernels/loss/add_scores.h"
#include "tests/support/catch.h"
#include "tests/support/cuda_device.h"
#include "tests/support/error_of.h"

using namespace tandem;
using namespace tandem::test;

TEST_CASE("sums of scores on a GPU refuse f64 logits and tensors that are elsewhere", "[cuda][loss]") {
  if (!has_gpu()) return;
  const Tensor sums = kernels::make_score_sums(kGpu), logits = Tensor::zeros({2, 3}),
               labels = Tensor::zeros({2}, {.dtype = DType::i64});
  CHECK_THAT(error_of([&] { kernels::add_scores({}, logits, labels, {}, Out(sums)); }),
             ContainsText("move one of them"));
  CHECK_THAT(error_of([&] {
               kernels::add_scores({}, Tensor::zeros({2, 3}, {.dtype = DType::f64, .device = kGpu}), labels.to(kGpu),
                                   {}, Out(sums));
             }),
             ContainsText("add_scores: CUDA kernels take f32, f16 and bf16"));
  CHECK_THAT(error_of([&] { kernels::read_score_sums(sums); }), ContainsText("once they are copied to the CPU"));
}

// Convolution code chosen by measurement on a GPU: right by every choice.
#include "kernels/conv/tuning/tuner.h"
#include "tests/kernels/cuda_conv_support.h"

namespace tandem::test {
namespace {

namespace k = tandem::kernels;

/// The passes as the entry points run them.
const ConvFamily kTuned{
    "tuned",
    [](const auto& g, const auto& x, const auto& w, const auto& epilogue, const auto& y) {
      k::cuda::conv_forward(g, k::ConvImpl::automatic, x, w, epilogue, y);
    },
    [](const auto& g, const auto& grad_y, const auto& mask, const auto& w, const auto& grad_x) {
      k::cuda::conv_backward(g, k::ConvImpl::automatic, {}, w, mask, grad_y, grad_x, {}, {}, {});
    },
    [](const auto& g, const auto& x, const auto& grad_y, const auto& mask, const auto& grad_w) {
      k::cuda::conv_backward(g, k::ConvImpl::automatic, x, {}, mask, grad_y, {}, grad_w, {}, {});
    }};

}  // namespace

TEST_CASE("on a GPU convolutions are measured at first use, and right however they were chosen", "[cuda][conv]") {
  if (!has_gpu()) return;
  const ConvCase one = square_case(2, 8, 5, 4, 16, 3, 1);
  k::ConvTuner& tuner = k::conv_tuner();
  for (const DType dtype : {DType::f16, DType::f32}) {
    tuner.clear();
    tuner.set_measuring(true);
    check_passes(kTuned, one, dtype, true, true);
    // In f32 the tile has nobody to be measured against but cuDNN.
    if (dtype == DType::f16 || cuda_is_simulated()) CHECK(tuner.results().size() == (dtype == DType::f16 ? 3 : 0));
    tuner.set_measuring(false);
    for (const auto& [key, result] : tuner.results()) {
      CHECK(key.device == DeviceType::cuda);
      CHECK(result.microseconds.contains("implicit_gemm") == (dtype == DType::f16));
      CHECK(result.microseconds.contains("tile"));
    }
    for (const std::string chosen : {"implicit_gemm", "tile", "cudnn"}) {
      for (const auto& [key, result] : tuner.results())
        if (result.microseconds.contains(chosen)) tuner.add(key, {chosen, result.microseconds});
      for (const bool fused : {false, true}) check_passes(kTuned, one, dtype, true, fused);
    }
  }
  tuner.clear();
}

}  // namespace tandem::test

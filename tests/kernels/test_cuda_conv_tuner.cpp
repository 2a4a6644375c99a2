// Convolution code chosen by measurement on a GPU: right by every choice.
#include "tandem/core/device_query.h"
#include "tandem/kernels/conv/tuning/tuner.h"
#include "tests/kernels/cuda_conv_support.h"

namespace tandem::test {
namespace {

namespace k = tandem::kernels;

const ConvFamily kTuned = chosen_by(k::ConvImpl::automatic);

}  // namespace

TEST_CASE("on a GPU convolutions are measured at first use, and right however they were chosen",
          "[cuda][conv][library]") {
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

TEST_CASE("what follows a convolution is measured together with it and apart", "[cuda][conv][library]") {
  if (!has_gpu()) return;
  k::ConvTuner& tuner = k::conv_tuner();
  // The second one is for stationary weights, with moments but not with pooling.
  for (const ConvCase& one : {square_case(2, 8, 5, 4, 16, 3, 1), square_case(128, 8, 14, 13, 8, 2, 0)}) {
    INFO(one.text());
    tuner.clear();
    const ConvInputs in(one, DType::f16, true);
    const Tensor x = on_gpu(in.x), w = on_gpu(in.w);
    const auto fuses = [&] { return fuses_pool(x, w, one.options); };
    const auto parts = [&] { return moment_parts(x, w, one.options); };
    if (cuda_is_simulated()) {  // by rule
      CHECK(fuses());
      CHECK(parts() > 0);
    }
    tuner.set_measuring(true);
    fuses();
    parts();
    tuner.set_measuring(false);
    // And, for each of the two, the forward pass alone: with what pooling follows, and as moments do.
    CHECK(tuner.results().size() == 4);
    for (const auto& [key, result] : tuner.results()) {
      if (key.pass == k::PassKind::forward) continue;
      CHECK(result.microseconds.size() == (k::cuda::stationary::pays(key.pass, one.geometry()) ? 3 : 2));
      for (const auto& [chosen, time] : result.microseconds) {
        INFO(k::name_of(key.pass) << " " << chosen);
        tuner.add(key, {chosen, result.microseconds});
        const bool together = chosen != "apart";
        if (key.pass == k::PassKind::forward_pool) {
          CHECK(fuses() == together);
          if (!together) continue;
          check_pooled(one, DType::f16, true, pooled_by(k::ConvImpl::automatic, one), k::cuda::implicit_gemm::forward);
        } else {
          const std::int64_t expected = !together                ? 0
                                        : chosen == "stationary" ? k::cuda::stationary::moment_parts(one.geometry())
                                                                 : k::cuda::implicit_gemm::moment_parts(one.geometry());
          CHECK(parts() == expected);
        }
        // What was forced is not the tuner's business.
        k::Conv2dOptions fused = one.options;
        fused.impl = k::ConvImpl::fused;
        CHECK(fuses_pool(x, w, fused));
        CHECK(moment_parts(x, w, fused) > 0);
      }
    }
  }
  tuner.clear();
}

}  // namespace tandem::test

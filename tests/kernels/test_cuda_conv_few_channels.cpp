// Convolution of images with few channels on tensor cores against the reference in f64: exact on whole numbers, bounded
// on random ones; what does not fit a tile; the bias gradient in the same reading.
#include "tandem/core/out.h"
#include "tandem/kernels/conv/few_channels/plan.h"
#include "tests/kernels/cuda_conv_support.h"
#include "tests/support/catch.h"

#include <limits>

namespace tandem::test {
namespace {

namespace k = tandem::kernels;
namespace few = k::cuda::few_channels;

constexpr DType kHalves[] = {DType::f16, DType::bf16};
const ConvFamily kFew = passes_of("few_channels");
constexpr ConvPasses kNotBackwardInput{.backward_input = false};

/// Tiles of whole images, of lines, of vectors of a line; depths within one instruction and over several, within one
/// tile of columns and over several; output channels that fill no tile, one, and more.
std::vector<ConvCase> cases() {
  return {
      square_case(2, 3, 9, 7, 16, 3, 1),
      square_case(1, 1, 28, 28, 32, 3, 1),
      square_case(1, 4, 3, 130, 8, 3, 1),
      square_case(1, 3, 11, 13, 72, 7, 3, 2),
      square_case(3, 2, 6, 5, 40, 5, 2),
      square_case(1, 3, 6, 6, 8, 1, 0),
      square_case(1, 12, 4, 5, 24, 3, 1),
      square_case(2, 1, 7, 6, 8, 3, 0, 1, 2),
      square_case(1, 3, 6, 7, 64, 3, 1),
      square_case(1, 1, 5, 6, 40, 3, 1),
      {2, 5, 7, 9, 16, 5, 3, {{2, 1}, {1, 2}, {1, 2}, 1}},
      {1, 4, 9, 10, 8, 3, 3, {{4, 3}, {2, 2}, {2, 3}, 1}},
      {1, 8, 2, 3, 8, 2, 1, {{3, 4}, {1, 0}, {1, 1}, 1}},
  };
}

}  // namespace

TEST_CASE("convolution of few channels on tensor cores", "[cuda][conv]") {
  if (!has_gpu()) return;
  for (const ConvCase& one : cases()) {
    for (const DType dtype : kHalves) {
      check_passes(kFew, one, dtype, true, true, kNotBackwardInput);
      check_passes(kFew, one, dtype, false, dtype == DType::f16, kNotBackwardInput);
    }
    check_passes(kFew, one, DType::f16, true, false, kNotBackwardInput);
  }
}

TEST_CASE("blocks take several tiles of few channels", "[cuda][conv]") {
  if (!has_gpu()) return;
  const ConvCase one = square_case(2100, 3, 1, 1, 8, 1, 0);
  CHECK(few::forward_block_tiles(2100) == 2);
  CHECK(few::weight_part_tiles(2100) == 5);
  check_passes(kFew, one, DType::f16, true, true, kNotBackwardInput);
}

TEST_CASE("gradients of bias and weights of few channels come in one reading", "[cuda][conv]") {
  if (!has_gpu()) return;
  for (ConvCase one : cases()) {
    one.options.impl = k::ConvImpl::fused;
    for (const DType dtype : kHalves) {
      INFO(one.text() << " " << name_of(dtype));
      const ConvInputs in(one, dtype, true);
      const ConvExpected expected(one, in, false, true, true, true);
      const Tensor x = on_gpu(in.x), grad_y = on_gpu(in.grad_y), mask = on_gpu(in.mask), w = on_gpu(in.w);
      const Tensor grad_w = poisoned_on_gpu(one.weight(), dtype, kLast), grad_bias = poisoned_on_gpu({one.k}, dtype);
      few::backward_weight_and_bias(one.geometry(), x, grad_y, mask, Out(grad_w), Out(grad_bias));
      CHECK(difference(grad_w, expected.grad_w) == "");
      CHECK(difference(grad_bias, expected.grad_bias) == "");
      const Tensor chosen_w = poisoned_on_gpu(one.weight(), dtype, kLast),
                   chosen_bias = poisoned_on_gpu({one.k}, dtype);
      k::conv_bias_relu_backward(one.options, {.x = x, .w = w, .mask = mask, .grad_y = grad_y},
                                 {.w = Out(chosen_w), .bias = Out(chosen_bias)});
      CHECK(difference(chosen_w, expected.grad_w) == "");
      CHECK(difference(chosen_bias, expected.grad_bias) == "");
    }
  }
}

TEST_CASE("an infinite pixel reaches its own outputs and taps only", "[cuda][conv]") {
  if (!has_gpu()) return;
  const ConvCase one = square_case(1, 3, 5, 6, 8, 3, 1);
  const auto ones = [](const Shape& shape) {
    return mapped(empty_f64(shape), DType::f16, kLast, [](double) { return 1.0f; });
  };
  const Tensor x = ones(one.x()), w = ones(one.weight()), grad_y = ones(one.y());
  Out(x).data<Half>()[0] = Half(std::numeric_limits<float>::infinity());
  const Tensor y = poisoned_on_gpu(one.y(), DType::f16, kLast),
               grad_w = poisoned_on_gpu(one.weight(), DType::f16, kLast);
  few::forward(one.geometry(), on_gpu(x), on_gpu(w), {}, Out(y));
  few::backward_weight(one.geometry(), on_gpu(x), on_gpu(grad_y), {}, Out(grad_w));
  const Tensor expected_y = empty_f64(one.y()), expected_w = empty_f64(one.weight());
  k::reference::conv2d_forward(in_f64(x, kLast), in_f64(w, kLast), {}, one.geometry(), false, Out(expected_y));
  k::reference::conv2d_backward_weight(in_f64(x, kLast), in_f64(grad_y, kLast), one.geometry(), Out(expected_w));
  CHECK(y.to(Device{}).to_vector<float>() == expected_y.to_vector<float>());
  CHECK(grad_w.to(Device{}).to_vector<float>() == expected_w.to_vector<float>());
}

TEST_CASE("what few channels are not", "[cuda][conv]") {
  if (!has_gpu()) return;
  const auto reason = [](const ConvCase& one, DType dtype = DType::f16) {
    return std::string(few::obstacle(k::PassKind::forward, one.geometry(), {dtype, kGpu}));
  };
  CHECK(reason(square_case(1, 3, 224, 224, 64, 7, 3, 2)) == "");
  CHECK_THAT(reason(square_case(1, 3, 8, 8, 12, 3, 1)), ContainsText("output channels are no multiple of 8"));
  CHECK_THAT(reason(square_case(1, 3, 8, 8, 16, 3, 1), DType::f32), ContainsText("f16 and bf16"));
  CHECK_THAT(reason(square_case(1, 36, 8, 8, 16, 3, 1)), ContainsText("more than 256 elements"));
  CHECK_THAT(reason(square_case(1, 4, 99, 99, 16, 3, 1, 40)), ContainsText("more than 16384 elements"));
  CHECK_THAT(reason(square_case(0, 3, 8, 8, 16, 3, 1)), ContainsText("empty"));
  CHECK_THAT(reason(square_case(1, 4, 8, 8, 16, 3, 1, 1, 1, 2)), ContainsText("more than one group"));
  const ConvCase one = square_case(1, 3, 8, 8, 12, 3, 1);
  const Tensor x = poisoned_on_gpu(one.x(), DType::f16, kLast), y = poisoned_on_gpu(one.y(), DType::f16, kLast);
  const Tensor w = poisoned_on_gpu(one.weight(), DType::f16, kLast);
  CHECK_THAT(error_of([&] { few::forward(one.geometry(), x, w, {}, Out(y)); }),
             ContainsText("do not run f16 of x [1, 3, 8, 8], w [12, 3, 3, 3]: output channels are no multiple of 8"));
  CHECK_THAT(error_of([&] { few::backward_weight(one.geometry(), x, y, {}, Out(w)); }),
             ContainsText("no multiple of 8"));
}

}  // namespace tandem::test

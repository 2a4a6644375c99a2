// Convolution with weights that stay in shared memory against the reference in f64: exact on whole numbers, bounded on
// random ones; several tiles to a block; the gradient for the layer below; pooling; what it takes and when it is
// chosen.
#include "tandem/core/cuda/device_limits.h"
#include "tandem/kernels/conv/stationary/plan.h"
#include "tests/kernels/cuda_conv_support.h"
#include "tests/support/catch.h"

namespace tandem::test {
namespace {

namespace k = tandem::kernels;
namespace stationary = k::cuda::stationary;
using k::PassKind;

constexpr DType kHalves[] = {DType::f16, DType::bf16};
const ConvFamily kStationary = passes_of("stationary");
constexpr ConvPasses kWeight{.forward = false, .backward_input = false};
constexpr ConvPasses kBoth{.backward_weight = false};
constexpr ConvPasses kForward{.backward_input = false, .backward_weight = false};

/// Every shape of block; tiles that are full, end within an image, and hang over; taps that are one, many, far apart,
/// and mostly outside; channels that fill a shape and do not.
std::vector<ConvCase> cases() {
  return {
      square_case(2, 8, 5, 7, 16, 3, 1),
      square_case(1, 32, 16, 16, 32, 3, 1),
      square_case(1, 24, 17, 33, 40, 3, 1),
      square_case(1, 64, 18, 16, 64, 3, 1),
      square_case(2, 48, 7, 9, 8, 1, 0),
      square_case(1, 72, 9, 17, 104, 3, 1),
      square_case(1, 16, 20, 19, 24, 5, 2),
      square_case(1, 8, 12, 11, 8, 3, 2, 1, 2),
      square_case(1, 128, 8, 10, 128, 3, 1),
      {1, 16, 9, 21, 32, 1, 7, {{1, 1}, {0, 3}, {1, 1}, 1}},
      {2, 40, 6, 4, 24, 4, 2, {{1, 1}, {5, 0}, {2, 3}, 1}},
  };
}

}  // namespace

TEST_CASE("convolution with stationary weights", "[cuda][conv]") {
  if (!has_gpu()) return;
  for (const ConvCase& one : cases()) {
    for (const DType dtype : kHalves) {
      check_passes(kStationary, one, dtype, true, true, kBoth);
      check_passes(kStationary, one, dtype, false, dtype == DType::f16, kBoth);
    }
    check_passes(kStationary, one, DType::f16, true, false, kBoth);
  }
}

TEST_CASE("blocks keep their weights for several tiles", "[cuda][conv]") {
  if (!has_gpu()) return;
  check_passes(kStationary, square_case(900, 8, 3, 2, 8, 1, 0), DType::f16, true, true, kBoth);
  check_passes(kStationary, square_case(300, 8, 2, 3, 8, 3, 1), DType::f16, true, true, kForward);
}

TEST_CASE("gradients of weights whose sums stay in registers", "[cuda][conv]") {
  if (!has_gpu()) return;
  // Every shape of block; fewer taps than registers; tiles that end within an image; several tiles to a block.
  for (const ConvCase& one :
       {square_case(2, 8, 5, 7, 16, 3, 1), square_case(1, 32, 16, 16, 64, 3, 1), square_case(1, 24, 17, 33, 40, 3, 1),
        square_case(1, 64, 18, 16, 64, 3, 1), square_case(2, 48, 7, 9, 8, 1, 0), square_case(1, 64, 20, 19, 24, 2, 1),
        square_case(1, 8, 12, 11, 8, 3, 2, 1, 2), ConvCase{1, 16, 9, 21, 32, 1, 7, {{1, 1}, {0, 3}, {1, 1}, 1}},
        ConvCase{2, 40, 6, 4, 24, 4, 2, {{1, 1}, {5, 0}, {2, 3}, 1}}, square_case(600, 8, 2, 3, 8, 3, 1),
        square_case(300, 40, 1, 2, 40, 1, 0)}) {
    for (const DType dtype : kHalves) check_passes(kStationary, one, dtype, true, true, kWeight);
    check_passes(kStationary, one, DType::f16, false, false, kWeight);
  }
}

TEST_CASE("stationary weights and the implicit product give the same bits", "[cuda][conv]") {
  if (!has_gpu()) return;
  // Channels in multiples of 16: the same instructions add up in the same order.
  for (const ConvCase& one : {square_case(2, 32, 9, 18, 48, 3, 1), square_case(1, 128, 8, 9, 16, 3, 1)}) {
    const ConvInputs in(one, DType::f16, false);
    const Tensor x = on_gpu(in.x), w = on_gpu(in.w), grad_y = on_gpu(in.grad_y);
    const auto empty = [](const Shape& shape) { return poisoned_on_gpu(shape, DType::f16, kLast); };
    const Tensor y = empty(one.y()), same_y = empty(one.y()), grad_x = empty(one.x()), same_grad_x = empty(one.x());
    stationary::forward(one.geometry(), x, w, {.bias = on_gpu(in.bias), .relu = true}, Out(y));
    k::cuda::implicit_gemm::forward(one.geometry(), x, w, {.bias = on_gpu(in.bias), .relu = true}, Out(same_y));
    CHECK(same_bits_on_gpu(y, same_y));
    stationary::backward_input(one.geometry(), grad_y, {}, w, Out(grad_x));
    k::cuda::implicit_gemm::backward_input(one.geometry(), grad_y, {}, w, Out(same_grad_x));
    CHECK(same_bits_on_gpu(grad_x, same_grad_x));
  }
}

TEST_CASE("gradients through stationary weights do the work of the layer below", "[cuda][conv]") {
  if (!has_gpu()) return;
  for (const ConvCase& one :
       {square_case(2, 24, 5, 18, 72, 3, 1), square_case(1, 64, 17, 9, 64, 3, 1), square_case(3, 128, 9, 9, 8, 1, 0)}) {
    for (const DType dtype : kHalves) {
      const auto run = [&](const Tensor& grad_y, const Tensor& w, const k::LayerBelow& below, const Out& grad_x) {
        stationary::backward_input_below(one.geometry(), grad_y, {}, w, below, grad_x);
      };
      for (const auto& [masks, sums] : {std::pair{true, true}, {true, false}, {false, true}})
        check_layer_below(one, dtype, masks, sums, run);
    }
  }
}

TEST_CASE("stationary weights pool on the way out", "[cuda][conv]") {
  if (!has_gpu()) return;
  for (const ConvCase& one :
       {square_case(2, 24, 5, 7, 72, 3, 1), square_case(1, 64, 18, 35, 64, 3, 1), square_case(3, 8, 2, 2, 8, 1, 0),
        square_case(1, 128, 9, 18, 40, 3, 1), square_case(1, 40, 9, 18, 24, 3, 1)}) {
    for (const DType dtype : kHalves)
      for (const bool whole : {true, false})
        check_pooled(one, dtype, whole, stationary::forward_pool, stationary::forward);
  }
}

TEST_CASE("what stationary weights do not take", "[cuda][conv]") {
  if (!has_gpu()) return;
  const auto reason = [](const ConvCase& one, DType dtype = DType::f16, PassKind pass = PassKind::forward) {
    return std::string(stationary::obstacle(pass, one.geometry(), {dtype, kGpu}));
  };
  CHECK(reason(square_case(1, 8, 8, 8, 16, 3, 1)) == "");
  CHECK_THAT(reason(square_case(1, 8, 8, 8, 16, 3, 1), DType::f32), ContainsText("f16 and bf16"));
  CHECK_THAT(reason(square_case(1, 12, 8, 8, 16, 3, 1)), ContainsText("multiples of 8"));
  CHECK_THAT(reason(square_case(1, 136, 8, 8, 16, 3, 1)), ContainsText("more than 128 channels"));
  CHECK_THAT(reason(square_case(1, 8, 8, 8, 16, 3, 1, 2)), ContainsText("strides are not 1"));
  CHECK_THAT(reason(square_case(1, 64, 8, 8, 64, 7, 3)), ContainsText("do not fit"));
  CHECK_THAT(reason(square_case(1, 8, 8, 1, 16, 3, 1), DType::f16, PassKind::forward_pool),
             ContainsText("no whole window"));
  CHECK_THAT(reason(square_case(0, 8, 8, 8, 16, 3, 1)), ContainsText("empty"));
  for (const ConvCase& one : {square_case(1, 72, 8, 8, 16, 3, 1), square_case(1, 8, 8, 8, 16, 4, 1)})
    CHECK_THAT(reason(one, DType::f16, PassKind::backward_weight), ContainsText("64 channels or 9 taps"));
  // Halos and gradients alone take all 227 KiB of a multiprocessor; those of the next smaller ones leave room.
  const auto dilated = [](std::int64_t down, std::int64_t across) {
    return ConvCase{1, 40, 5, 6, 32, 3, 3, {{1, 1}, {down, across}, {down, across}, 1}};
  };
  CHECK_THAT(reason(dilated(5, 7), DType::f16, PassKind::backward_weight), ContainsText("do not fit"));
  if (cuda::device_limits(kGpu).shared_bytes >= 227 * 1024)
    CHECK(reason(dilated(5, 6), DType::f16, PassKind::backward_weight) == "");
  const ConvCase strided = square_case(1, 8, 4, 4, 8, 3, 1, 2);
  const Tensor x = poisoned_on_gpu(strided.x(), DType::f16, kLast), y = poisoned_on_gpu(strided.y(), DType::f16, kLast);
  const Tensor w = poisoned_on_gpu(strided.weight(), DType::f16, kLast);
  CHECK_THAT(error_of([&] { stationary::forward(strided.geometry(), x, w, {}, Out(y)); }),
             ContainsText("do not run f16 of x [1, 8, 4, 4], w [8, 8, 3, 3]: strides are not 1"));
  CHECK_THAT(error_of([&] { stationary::backward_input(strided.geometry(), y, {}, w, Out(x)); }),
             ContainsText("strides"));
  CHECK_THAT(error_of([&] { stationary::backward_weight(strided.geometry(), x, y, {}, Out(w)); }),
             ContainsText("strides"));
  CHECK_THAT(error_of([&] { stationary::forward_pool(strided.geometry(), x, w, {}, {.y = Out(y)}); }),
             ContainsText("strides"));
}

TEST_CASE("stationary weights are chosen for many full tiles of few channels", "[cuda][conv]") {
  const auto pays = [](const ConvCase& one, PassKind pass = PassKind::forward) {
    return stationary::pays(pass, one.geometry());
  };
  CHECK(pays(square_case(128, 64, 32, 32, 64, 3, 1)));
  CHECK(pays(square_case(128, 64, 32, 32, 64, 3, 1), PassKind::forward_pool));
  CHECK(pays(square_case(512, 32, 28, 28, 32, 3, 1), PassKind::backward_input));
  CHECK(!pays(square_case(512, 64, 32, 32, 64, 3, 1), PassKind::backward_weight));
  CHECK(!pays(square_case(128, 64, 32, 32, 128, 3, 1)));
  CHECK(!pays(square_case(128, 64, 32, 32, 64, 1, 0)));
  CHECK(!pays(square_case(8, 64, 32, 32, 64, 3, 1)));  // few tiles
  CHECK(!pays(square_case(512, 64, 8, 8, 64, 3, 1)));  // a quarter of each
  CHECK(!pays(square_case(512, 64, 4, 4, 72, 3, 1), PassKind::backward_input));
}

TEST_CASE("the entry points of convolution reach stationary weights", "[cuda][conv]") {
  if (!has_gpu()) return;
  ConvCase one = square_case(128, 8, 14, 13, 8, 2, 0);
  one.options.impl = k::ConvImpl::fused;
  CHECK(stationary::pays(PassKind::forward, one.geometry()));
  CHECK(stationary::pays(PassKind::backward_input, one.geometry()));
  check_passes(chosen_by(k::ConvImpl::fused), one, DType::f16, true, true);
  check_layer_below(one, DType::bf16, true, true,
                    [&](const Tensor& grad_y, const Tensor& w, const k::LayerBelow& below, const Out& grad_x) {
                      k::cuda::conv_backward(plan_of(one.geometry(), k::ConvImpl::fused, DType::bf16),
                                             {.w = w, .grad_y = grad_y}, {.x = grad_x}, below);
                    });
  check_pooled(one, DType::f16, true, pooled_by(k::ConvImpl::fused, one), stationary::forward);
}

}  // namespace tandem::test

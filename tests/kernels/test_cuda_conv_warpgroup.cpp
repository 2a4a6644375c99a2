// Convolution by warpgroups against the reference in f64: exact on whole numbers, bounded on random ones; the gradient
// for the layer below; the same bits as the implicit product; what it takes, and where it is chosen.
#include "tandem/core/device_query.h"
#include "tandem/kernels/conv/operands.h"
#include "tandem/kernels/conv/warpgroup/plan.h"
#include "tandem/kernels/notice.h"
#include "tests/kernels/cuda_conv_support.h"
#include "tests/support/catch.h"
#include "tests/support/skip.h"

#include <string>
#include <thread>

namespace tandem::test {
namespace {

namespace k = tandem::kernels;
namespace warpgroup = k::cuda::warpgroup;

constexpr DType kHalves[] = {DType::f16, DType::bf16};
const ConvFamily kWarpgroup = passes_of("warpgroup");

/// False where the kernels cannot run: no GPU, or not one for them.
bool has_hopper() {
  if (!has_gpu()) return false;
  const auto geometry = square_case(1, 8, 8, 8, 8, 3, 1).geometry();
  return runs_unless(std::string(warpgroup::obstacle(k::PassKind::forward, geometry, {DType::f16, kGpu})));
}

/// Narrow and wide blocks; boxes of one line, of many, of several images, that hang over; channels that fill blocks of
/// 64 and do not; taps that are one, many, far apart, and mostly outside.
std::vector<ConvCase> cases() {
  return {
      square_case(2, 8, 5, 7, 16, 3, 1),
      square_case(1, 64, 16, 16, 128, 3, 1),
      square_case(3, 72, 8, 8, 136, 3, 1),
      square_case(1, 136, 7, 9, 264, 1, 0),
      square_case(5, 24, 4, 4, 40, 3, 1),
      square_case(1, 16, 3, 130, 24, 1, 0),
      square_case(1, 16, 20, 19, 24, 5, 2),
      square_case(1, 8, 12, 11, 8, 3, 2, 1, 2),
      square_case(2, 16, 9, 10, 8, 3, 0),
      {1, 16, 9, 21, 32, 1, 7, {{1, 1}, {0, 3}, {1, 1}, 1}},
      {2, 40, 6, 4, 24, 4, 2, {{1, 1}, {5, 0}, {2, 3}, 1}},
  };
}

}  // namespace

TEST_CASE("convolution by warpgroups", "[cuda][conv][warpgroup]") {
  if (!has_hopper()) return;
  for (const ConvCase& one : cases()) {
    for (const DType dtype : kHalves) {
      check_passes(kWarpgroup, one, dtype, true, true);
      check_passes(kWarpgroup, one, dtype, false, dtype == DType::f16);
    }
    check_passes(kWarpgroup, one, DType::f16, true, false);
  }
}

TEST_CASE("a thread's first call may be a convolution by warpgroups", "[cuda][conv][warpgroup]") {
  if (!has_hopper()) return;
  const ConvCase one = square_case(1, 16, 8, 8, 8, 3, 1);
  const ConvInputs in(one, DType::f16, true);
  const Tensor x = on_gpu(in.x), w = on_gpu(in.w), y = poisoned_on_gpu(one.y(), DType::f16, Layout::channels_last);
  std::string error;
  std::thread([&] {
    error = error_of([&] {
      warpgroup::forward(one.geometry(), x, w, {}, Out(y));
      synchronize(kGpu);
    });
  }).join();
  CHECK(error == "no error");
  CHECK(difference(y, ConvExpected(one, in, false, false, false, false).y) == "");
}

TEST_CASE("blocks of warpgroups take several tiles", "[cuda][conv][warpgroup]") {
  if (!has_hopper()) return;
  // More tiles than a GPU has multiprocessors, and more steps than a block has stages.
  check_passes(kWarpgroup, square_case(520, 8, 8, 8, 8, 1, 0), DType::f16, true, true,
               {.forward = true, .backward_input = true, .backward_weight = true});
}

TEST_CASE("warpgroups and the implicit product give the same bits", "[cuda][conv][warpgroup]") {
  if (!has_hopper()) return;
  if (!cuda_is_simulated()) return;  // tensor cores add up their 16 products in an order of their own
  for (const ConvCase& one : {square_case(2, 64, 9, 18, 64, 3, 1), square_case(1, 128, 8, 9, 192, 3, 1)}) {
    const ConvInputs in(one, DType::f16, false);
    const Tensor x = on_gpu(in.x), w = on_gpu(in.w), grad_y = on_gpu(in.grad_y);
    const auto empty = [](const Shape& shape) { return poisoned_on_gpu(shape, DType::f16, kLast); };
    const Tensor y = empty(one.y()), same_y = empty(one.y()), grad_x = empty(one.x()), same_grad_x = empty(one.x());
    warpgroup::forward(one.geometry(), x, w, {.bias = on_gpu(in.bias), .relu = true}, Out(y));
    k::cuda::implicit_gemm::forward(one.geometry(), x, w, {.bias = on_gpu(in.bias), .relu = true}, Out(same_y));
    CHECK(same_bits_on_gpu(y, same_y));
    warpgroup::backward_input(one.geometry(), grad_y, {}, w, Out(grad_x));
    k::cuda::implicit_gemm::backward_input(one.geometry(), grad_y, {}, w, Out(same_grad_x));
    CHECK(same_bits_on_gpu(grad_x, same_grad_x));
  }
}

TEST_CASE("gradients by warpgroups do the work of the layer below", "[cuda][conv][warpgroup]") {
  if (!has_hopper()) return;
  for (const ConvCase& one : {square_case(2, 24, 5, 18, 72, 3, 1), square_case(1, 136, 17, 9, 64, 3, 1)}) {
    for (const DType dtype : kHalves) {
      const auto run = [&](const Tensor& grad_y, const Tensor& w, const k::LayerBelow& below, const Out& grad_x) {
        warpgroup::backward_input_below(one.geometry(), grad_y, {}, w, below, grad_x);
      };
      for (const auto& [masks, sums] : {std::pair{true, true}, {true, false}, {false, true}})
        check_layer_below(one, dtype, masks, sums, run);
    }
  }
}

TEST_CASE("what warpgroups do not take", "[cuda][conv][warpgroup]") {
  if (!has_hopper()) return;
  const Tensor any = poisoned_on_gpu({16}, DType::f16);
  const auto reason = [](const ConvCase& one, DType dtype = DType::f16) {
    return std::string(warpgroup::obstacle(k::PassKind::forward, one.geometry(), {dtype, kGpu}));
  };
  CHECK(reason(square_case(1, 8, 8, 8, 16, 3, 1)) == "");
  CHECK_THAT(reason(square_case(1, 8, 8, 8, 16, 3, 1), DType::f32), ContainsText("f16 and bf16"));
  CHECK_THAT(reason(square_case(1, 12, 8, 8, 16, 3, 1)), ContainsText("multiples of 8"));
  CHECK_THAT(reason(square_case(1, 8, 8, 8, 16, 3, 1, 2)), ContainsText("strides are not 1"));
  CHECK_THAT(reason(square_case(0, 8, 8, 8, 16, 3, 1)), ContainsText("empty"));
  const Tensor odd = any.narrow(0, 1, 8);
  CHECK_THAT(std::string(warpgroup::obstacle(k::PassKind::forward, square_case(1, 8, 8, 8, 16, 3, 1).geometry(),
                                             k::cuda::operands_of(DType::f16, any, odd))),
             ContainsText("multiple of 16 bytes"));
  const ConvCase strided = square_case(1, 8, 4, 4, 8, 3, 1, 2);
  const Tensor x = poisoned_on_gpu(strided.x(), DType::f16, kLast), y = poisoned_on_gpu(strided.y(), DType::f16, kLast);
  const Tensor w = poisoned_on_gpu(strided.weight(), DType::f16, kLast);
  CHECK_THAT(error_of([&] { warpgroup::forward(strided.geometry(), x, w, {}, Out(y)); }),
             ContainsText("do not run f16 of x [1, 8, 4, 4], w [8, 8, 3, 3]: strides are not 1"));
  CHECK_THAT(error_of([&] { warpgroup::backward_input(strided.geometry(), y, {}, w, Out(x)); }),
             ContainsText("strides"));
  CHECK_THAT(error_of([&] { warpgroup::backward_weight(strided.geometry(), x, y, {}, Out(w)); }),
             ContainsText("strides"));
}

TEST_CASE("warpgroups pay for wide and deep products of many tiles", "[conv][warpgroup]") {
  using k::PassKind;
  struct Expected {
    ConvCase one;
    bool forward, backward_input, backward_weight, beats_library;
  };
  // What was measured on an H100: docs/results/2026-11-26-h100.md.
  for (const Expected& expected : {Expected{square_case(512, 64, 16, 16, 128, 3, 1), true, false, true, false},
                                   {square_case(512, 128, 16, 16, 256, 3, 1), true, true, true, true},
                                   {square_case(512, 256, 8, 8, 256, 3, 1), true, true, true, true},
                                   {square_case(128, 128, 16, 16, 128, 3, 1), true, true, true, true},
                                   {square_case(128, 256, 8, 8, 256, 3, 1), true, true, true, false},  // 64 tiles
                                   {square_case(128, 512, 4, 4, 512, 3, 1), true, true, true, false},  // 32
                                   {square_case(128, 256, 3, 3, 256, 3, 1), false, false, true, false},
                                   {square_case(2, 64, 16, 16, 128, 3, 1), false, false, false, false},
                                   {square_case(128, 64, 32, 32, 64, 3, 1), false, false, false, false},
                                   {square_case(512, 32, 16, 16, 128, 3, 1), false, false, false, false},
                                   {square_case(512, 256, 16, 16, 256, 1, 0), false, false, false, false}}) {
    const k::ConvGeometry g = expected.one.geometry();
    INFO(expected.one.text());
    CHECK(warpgroup::pays(PassKind::forward, g) == expected.forward);
    CHECK(warpgroup::pays(PassKind::backward_input, g) == expected.backward_input);
    CHECK(warpgroup::pays(PassKind::backward_weight, g) == expected.backward_weight);
    CHECK_FALSE(warpgroup::pays(PassKind::forward_pool, g));
    CHECK(warpgroup::beats_library(PassKind::backward_input, g) == expected.beats_library);
    CHECK_FALSE(warpgroup::beats_library(PassKind::forward, g));
  }
}

TEST_CASE("warpgroups take the passes that they pay for", "[cuda][conv][warpgroup]") {
  if (!has_hopper()) return;
  const auto runner = [](const ConvCase& one, k::PassKind pass, k::ConvImpl impl) {
    const k::cuda::Operands operands{DType::f16, kGpu};
    return k::cuda::family_for(pass, *k::cuda::choose_family(one.geometry(), impl, operands).family, one.geometry(),
                               operands)
        .name;
  };
  const ConvCase wide = square_case(512, 64, 16, 16, 128, 3, 1);
  for (const k::ConvImpl impl : {k::ConvImpl::automatic, k::ConvImpl::fused}) {
    CHECK(runner(wide, k::PassKind::forward, impl) == "warpgroup");
    CHECK(runner(wide, k::PassKind::backward_input, impl) == "implicit_gemm");
    CHECK(runner(square_case(512, 64, 32, 32, 64, 3, 1), k::PassKind::forward, impl) == "stationary");
  }
}

TEST_CASE("warpgroups run wherever they are asked for and can", "[cuda][conv][warpgroup]") {
  if (!has_hopper()) return;
  const ConvCase one = square_case(1, 64, 8, 8, 64, 3, 1), strided = square_case(1, 8, 8, 8, 16, 3, 1, 2);
  const auto family = [](const ConvCase& of, k::ConvImpl impl) {
    return k::cuda::choose_family(of.geometry(), impl, {DType::f16, kGpu}).family->name;
  };
  CHECK(family(one, k::ConvImpl::automatic) == "implicit_gemm");
  CHECK(family(one, k::ConvImpl::fused) == "implicit_gemm");
  CHECK(family(one, k::ConvImpl::warpgroup) == "warpgroup");
  CHECK(family(strided, k::ConvImpl::warpgroup) == "implicit_gemm");

  std::vector<std::string> notices;
  k::listen_to_notices([&](const std::string& line) { notices.push_back(line); });
  const auto run = [](const ConvCase& of) {
    check_passes(chosen_by(k::ConvImpl::warpgroup), of, DType::f16, true, true);
  };
  run(one);
  CHECK(notices.empty());
  run(strided);
  run(strided);
  k::listen_to_notices(k::print_notice);
  REQUIRE(notices.size() == 1);
  CHECK(notices[0] ==
        "conv2d: f16 x [N, 8, 8, 8], w [16, 8, 3, 3] goes to the implicit_gemm kernels: strides are not 1");
  check_layer_below(one, DType::bf16, true, true,
                    [&](const Tensor& grad_y, const Tensor& w, const k::LayerBelow& below, const Out& grad_x) {
                      k::cuda::conv_backward(plan_of(one.geometry(), k::ConvImpl::warpgroup, DType::bf16),
                                             {.w = w, .grad_y = grad_y}, {.x = grad_x}, below);
                    });
}

}  // namespace tandem::test

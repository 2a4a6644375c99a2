// Convolution on tensor cores against the reference in f64: every tile and pass, exact on whole numbers, bounded on
// random ones; which geometries and addresses go to other kernels; what the gradient does for the layer below.
#include "tandem/kernels/conv/geometry.h"
#include "tandem/kernels/conv/implicit_gemm/tile_shape.h"
#include "tandem/kernels/conv/operands.h"
#include "tandem/kernels/float32_products.h"
#include "tandem/kernels/notice.h"
#include "tests/kernels/cuda_conv_support.h"
#include "tests/support/catch.h"

namespace tandem::test {
namespace {

namespace k = tandem::kernels;
namespace gemm = k::cuda::implicit_gemm;
using gemm::Tile;

constexpr Tile kTiles[] = {Tile::wide, Tile::tall, Tile::small, Tile::narrow};
constexpr DType kHalves[] = {DType::f16, DType::bf16};
constexpr ConvPasses kForward{.backward_input = false, .backward_weight = false};
constexpr ConvPasses kBackwardInput{.forward = false, .backward_weight = false};
constexpr ConvPasses kBackwardWeight{.forward = false, .backward_input = false};

/// The tensor-core passes; forward and backward_input by this tile.
ConvFamily tensor_cores(Tile tile) {
  return {"tensor cores, tile " + std::to_string(static_cast<int>(tile)),
          [tile](auto&&... arguments) { gemm::forward_by(tile, arguments...); },
          [tile](const auto& g, const auto& grad_y, const auto& mask, const auto& w, const auto& grad_x) {
            gemm::backward_input_by(tile, g, grad_y, mask, w, {}, grad_x);
          },
          gemm::backward_weight};
}
const ConvFamily kTensorCores = passes_of("implicit_gemm");

/// Tiles that are full, end in rows, columns or depth, or hang over by more than half; fewer and more steps than
/// stages.
std::vector<ConvCase> cases() {
  return {
      square_case(1, 8, 5, 4, 8, 3, 1),
      square_case(1, 64, 8, 8, 64, 1, 0),
      square_case(3, 8, 3, 3, 40, 1, 0),
      square_case(2, 24, 5, 7, 72, 3, 1),
      square_case(1, 40, 9, 9, 24, 3, 1, 2),
      square_case(1, 16, 11, 13, 136, 3, 2, 1, 2),
      square_case(1, 8, 7, 7, 16, 5, 2, 3),
      square_case(1, 16, 1, 1, 8, 3, 1),
      {2, 8, 7, 9, 16, 5, 3, {{2, 1}, {1, 2}, {1, 2}, 1}},
      {1, 16, 9, 10, 8, 3, 3, {{4, 3}, {2, 2}, {2, 3}, 1}},
      {1, 8, 2, 3, 8, 2, 1, {{3, 4}, {1, 0}, {1, 1}, 1}},
  };
}

void check_all(ConvPasses which) {
  for (const ConvCase& one : cases()) {
    for (const Tile tile : kTiles) check_passes(tensor_cores(tile), one, DType::f16, true, true, which);
    check_passes(kTensorCores, one, DType::bf16, true, false, which);
    check_passes(kTensorCores, one, DType::bf16, false, true, which);
  }
  for (const Tile tile : kTiles)
    check_passes(tensor_cores(tile), square_case(2, 24, 5, 7, 72, 3, 1), DType::bf16, true, true, which);
}

Tensor at_odd_address(const Tensor& values) {
  const Tensor whole = Tensor::empty({values.numel() + 1}, {.dtype = values.dtype(), .device = kGpu});
  const Tensor result = whole.as_strided(values.shape(), values.strides(), 1);
  result.copy_from(values);
  return result;
}

}  // namespace

TEST_CASE("convolution on tensor cores, by all tiles", "[cuda][conv]") {
  if (has_gpu()) check_all(kForward);
}

TEST_CASE("gradients of images on tensor cores, by all tiles", "[cuda][conv]") {
  if (has_gpu()) check_all(kBackwardInput);
}

TEST_CASE("gradients of weights on tensor cores", "[cuda][conv]") {
  if (!has_gpu()) return;
  for (const ConvCase& one : cases()) {
    check_passes(kTensorCores, one, DType::f16, true, true, kBackwardWeight);
    check_passes(kTensorCores, one, DType::bf16, true, false, kBackwardWeight);
    check_passes(kTensorCores, one, DType::bf16, false, true, kBackwardWeight);
  }
}

TEST_CASE("f32 on tensor cores, rounded or split", "[cuda][conv]") {
  if (!has_gpu()) return;
  using k::Float32Products;
  for (const auto& [products, product_error] :
       {std::pair{Float32Products::tf32, 2 * 0x1p-11}, std::pair{Float32Products::tf32x3, 0x1p-21}}) {
    const k::Float32ProductsScope scope(products);
    INFO((products == Float32Products::tf32 ? "tf32" : "3xtf32"));
    for (const ConvCase& one : cases()) {
      for (const Tile tile : kTiles) check_passes(tensor_cores(tile), one, DType::f32, true, true, {}, 0);
      check_passes(kTensorCores, one, DType::f32, false, true, {}, product_error);
      check_passes(kTensorCores, one, DType::f32, false, false, {}, product_error);
    }
  }
}

TEST_CASE("what is not finite stays so as split f32, in its own results only", "[cuda][conv]") {
  if (!has_gpu()) return;
  const ConvCase one = square_case(1, 8, 1, 4, 8, 1, 0);
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const Tensor x = Tensor::full(one.x(), 1.0, {.layout = kLast}),
               w = Tensor::full(one.weight(), 1.0, {.layout = kLast});
  Out(x).data<float>()[0] = kInfinity;
  Out(x).data<float>()[8] = -kInfinity;
  Out(x).data<float>()[16] = std::numeric_limits<float>::quiet_NaN();
  const auto pixels = [&](k::Float32Products products) {
    const k::Float32ProductsScope scope(products);
    const Tensor y = poisoned_on_gpu(one.y(), DType::f32, kLast);
    gemm::forward(one.geometry(), on_gpu(x), on_gpu(w), {}, Out(y));
    return y.to(Device{}).to_vector<float>();
  };
  const std::vector<float> rounded = pixels(k::Float32Products::tf32), split = pixels(k::Float32Products::tf32x3);
  CHECK(rounded[0] == kInfinity);
  CHECK(rounded[1] == -kInfinity);
  for (const int pixel : {0, 1, 2}) CHECK(!std::isfinite(split[static_cast<std::size_t>(pixel)]));
  CHECK(std::isnan(rounded[2]));
  CHECK(rounded[3] == 8.0f);
  CHECK(split[3] == 8.0f);
}

TEST_CASE("gradients of weights on tensor cores in parts, by both tiles", "[cuda][conv]") {
  if (!has_gpu()) return;
  const ConvCase one = square_case(3, 24, 10, 9, 72, 3, 1);  // 270 pixels: 5 steps
  for (const gemm::WeightPlan& plan :
       {gemm::WeightPlan{Tile::wide, 1, 5}, gemm::WeightPlan{Tile::wide, 3, 2}, gemm::WeightPlan{Tile::small, 1, 5},
        gemm::WeightPlan{Tile::small, 2, 3}, gemm::WeightPlan{Tile::small, 5, 1}}) {
    const ConvFamily by_plan{"tensor cores in " + std::to_string(plan.parts) + " parts", gemm::forward,
                             gemm::backward_input,
                             [plan](auto&&... arguments) { gemm::backward_weight_by(plan, arguments...); }};
    for (const DType dtype : kHalves) check_passes(by_plan, one, dtype, true, true, kBackwardWeight);
  }
}

TEST_CASE("each geometry and address goes to the kernels that can take it", "[cuda][conv]") {
  if (!has_gpu()) return;
  const auto choice = [](const ConvCase& one, DType dtype, k::ConvImpl impl = k::ConvImpl::fused) {
    return k::cuda::choose_family(one.geometry(), impl, {dtype, kGpu});
  };
  const ConvCase one = square_case(1, 8, 4, 4, 16, 3, 1);
  CHECK(choice(one, DType::f16).family->name == "implicit_gemm");
  CHECK(choice(one, DType::bf16, k::ConvImpl::automatic).family->name == "implicit_gemm");
  CHECK(choice(one, DType::bf16).reason == "");
  CHECK(choice(one, DType::f16, k::ConvImpl::reference).family->name == "naive");
  const auto check_reason = [&](const ConvCase& geometry, DType dtype, std::string_view family, const char* reason) {
    INFO(geometry.text());
    CHECK(choice(geometry, dtype).family->name == family);
    CHECK_THAT(std::string(choice(geometry, dtype).reason), ContainsText(reason));
  };
  check_reason(one, DType::f32, "tile", "multiplied in full");
  {
    const k::Float32ProductsScope scope(k::Float32Products::tf32);
    CHECK(choice(one, DType::f32).family->name == "implicit_gemm");
    check_reason(square_case(1, 4, 4, 4, 16, 3, 1), DType::f32, "tile", "multiples of 8");
  }
  check_reason(one, DType::f64, "tile", "f16, bf16 and f32");
  check_reason(square_case(1, 4, 4, 4, 16, 3, 1), DType::f16, "few_channels", "multiples of 8");
  check_reason(square_case(1, 36, 4, 4, 16, 3, 1), DType::f16, "tile", "multiples of 8");
  check_reason(square_case(1, 8, 4, 4, 12, 3, 1), DType::f16, "tile", "multiples of 8");
  check_reason(square_case(1, 16, 4, 4, 16, 3, 1, 1, 1, 2), DType::f16, "naive", "more than one group");
  check_reason(square_case(0, 8, 4, 4, 16, 3, 1), DType::f16, "naive", "empty");
  check_reason(square_case(1 << 10, 1 << 10, 40, 40, 16, 3, 1), DType::f16, "tile", "2^30 elements");
  check_reason({1, 8, 1, 1, 16, 1, 1, {{1, 1}, {1 << 13, 1 << 13}, {1, 1}, 1}}, DType::f16, "tile", "2^30 elements");

  const ConvInputs in(one, DType::f16, true);
  const Tensor x = on_gpu(in.x), odd = at_odd_address(in.x);
  CHECK(k::cuda::choose_family(one.geometry(), k::ConvImpl::fused, k::cuda::operands_of(DType::f16, x)).family->name ==
        "implicit_gemm");
  const k::cuda::FamilyChoice unaligned =
      k::cuda::choose_family(one.geometry(), k::ConvImpl::fused, k::cuda::operands_of(DType::f16, x, odd));
  CHECK(unaligned.family->name == "tile");
  CHECK_THAT(std::string(unaligned.reason), ContainsText("multiple of 16 bytes"));
}

TEST_CASE("convolution entry points take unaligned halves, and tensor cores refuse them in words", "[cuda][conv]") {
  if (!has_gpu()) return;
  ConvCase one = square_case(2, 8, 5, 4, 16, 3, 1);
  one.options.impl = k::ConvImpl::fused;
  const ConvInputs in(one, DType::f16, true);
  const ConvExpected expected(one, in, false, true, true, true);
  std::vector<std::string> notices;
  k::listen_to_notices([&](const std::string& line) { notices.push_back(line); });
  const Tensor x = on_gpu(in.x), w = on_gpu(in.w), bias = on_gpu(in.bias), grad_y = on_gpu(in.grad_y);
  const auto empty = [](const Tensor& model) { return poisoned_on_gpu(model.shape(), DType::f16, kLast); };
  const Tensor mask = on_gpu(in.mask), y_mask = poisoned_on_gpu(in.mask.shape(), DType::u8);
  const Tensor odd_x = at_odd_address(in.x), odd_w = at_odd_address(in.w), odd_gradient = at_odd_address(in.grad_y);
  for (const auto& [used_x, used_w, used_gradient] : {std::array{x, w, grad_y}, std::array{odd_x, w, grad_y},
                                                      std::array{x, odd_w, grad_y}, std::array{x, w, odd_gradient}}) {
    const Tensor y = empty(grad_y), grad_x = empty(x), grad_w = empty(w),
                 grad_bias = poisoned_on_gpu({one.k}, DType::f16);
    k::conv_bias_relu_forward(used_x, used_w, bias, one.options, Out(y), Out(y_mask));
    k::conv_bias_relu_backward(one.options, {.x = used_x, .w = used_w, .mask = mask, .grad_y = used_gradient},
                               {.x = Out(grad_x), .w = Out(grad_w), .bias = Out(grad_bias)});
    CHECK(difference(y, expected.y) == "");
    CHECK(mask_matches(y, y_mask));
    CHECK(difference(grad_x, expected.grad_x) == "");
    CHECK(difference(grad_w, expected.grad_w) == "");
    CHECK(difference(grad_bias, expected.grad_bias) == "");
  }
  k::listen_to_notices(k::print_notice);
  REQUIRE(notices.size() == 1);  // three passes, each more than once
  CHECK(notices[0] ==
        "conv2d: f16 x [N, 8, 5, 4], w [16, 8, 3, 3] goes to the tile kernels: a tensor begins at no multiple of 16 "
        "bytes");
  const k::ConvGeometry g = one.geometry();
  CHECK_THAT(error_of([&] { gemm::forward(g, odd_x, w, {}, Out(empty(grad_y))); }),
             ContainsText("multiple of 16 bytes"));
  CHECK_THAT(error_of([&] { gemm::backward_input(g, odd_gradient, {}, w, Out(empty(x))); }),
             ContainsText("multiple of 16 bytes"));
  CHECK_THAT(error_of([&] { gemm::backward_weight(g, odd_x, grad_y, {}, Out(empty(w))); }),
             ContainsText("multiple of 16 bytes"));
  const ConvCase few = square_case(1, 4, 4, 4, 16, 3, 1);
  CHECK_THAT(error_of([&] { gemm::forward(few.geometry(), x, w, {}, Out(grad_y)); }),
             ContainsText("do not run f16 of x [1, 4, 4, 4], w [16, 4, 3, 3]: channels are no multiples of 8"));
}

TEST_CASE("the gradient of an image passes the ReLU of the layer below and sums up its bias gradient", "[cuda][conv]") {
  if (!has_gpu()) return;
  for (const ConvCase& one : {square_case(2, 24, 5, 7, 72, 3, 1), square_case(1, 40, 9, 9, 24, 3, 1, 2),
                              square_case(3, 136, 8, 9, 8, 1, 0), square_case(1, 4, 5, 4, 8, 3, 1)}) {
    for (const DType dtype : kHalves) {
      const bool on_tensor_cores = one.c % 8 == 0;
      const auto by_choice = [&](const Tensor& grad_y, const Tensor& w, const k::LayerBelow& below, const Out& grad_x) {
        k::cuda::conv_backward(plan_of(one.geometry(), k::ConvImpl::fused, dtype), {.w = w, .grad_y = grad_y},
                               {.x = grad_x}, below);
      };
      for (const auto& [masks, sums] : {std::pair{true, true}, {true, false}, {false, false}})
        check_layer_below(one, dtype, masks, sums, by_choice);
      if (!on_tensor_cores) continue;
      for (const Tile tile : kTiles) {
        INFO("tile " << static_cast<int>(tile));
        check_layer_below(one, dtype, true, true,
                          [&](const Tensor& grad_y, const Tensor& w, const k::LayerBelow& below, const Out& grad_x) {
                            gemm::backward_input_by(tile, one.geometry(), grad_y, {}, w, below, grad_x);
                          });
      }
    }
  }
}

TEST_CASE("maxima of 2x2 outputs are all that the pooling convolution writes", "[cuda][conv]") {
  if (!has_gpu()) return;
  const k::Float32ProductsScope scope(k::Float32Products::tf32);
  // Odd sizes, tiles that end within an image, a stride, one window only.
  for (const ConvCase& one : {square_case(2, 24, 5, 7, 72, 3, 1), square_case(1, 8, 2, 2, 8, 1, 0),
                              square_case(3, 16, 9, 8, 136, 3, 1, 2), square_case(1, 8, 12, 14, 40, 3, 1)}) {
    for (const DType dtype : {DType::f16, DType::bf16, DType::f32}) {
      for (const Tile tile : kTiles) {
        for (const bool whole : {true, false}) {
          if (!whole && tile != kTiles[0]) continue;
          INFO("tile " << static_cast<int>(tile));
          check_pooled(
              one, dtype, whole, [&](auto&&... arguments) { gemm::forward_pool_by(tile, arguments...); },
              [&](auto&&... arguments) { gemm::forward_by(tile, arguments...); });
        }
      }
    }
    const k::Float32ProductsScope split(k::Float32Products::tf32x3);
    for (const Tile tile : kTiles)
      check_pooled(
          one, DType::f32, true, [&](auto&&... arguments) { gemm::forward_pool_by(tile, arguments...); },
          [&](auto&&... arguments) { gemm::forward_by(tile, arguments...); });
  }
}

TEST_CASE("what cannot be pooled on the way out is said", "[cuda][conv]") {
  if (!has_gpu()) return;
  const auto fuses = [](const ConvCase& one, DType dtype, k::ConvImpl impl = k::ConvImpl::fused) {
    k::Conv2dOptions options = one.options;
    options.impl = impl;
    return fuses_pool(poisoned_on_gpu(one.x(), dtype, kLast), poisoned_on_gpu(one.weight(), dtype, kLast), options);
  };
  const ConvCase one = square_case(1, 8, 4, 4, 16, 3, 1);
  CHECK(fuses(one, DType::f16));
  CHECK(!fuses(one, DType::f32));
  CHECK(!fuses(one, DType::f16, k::ConvImpl::reference));
  CHECK(!fuses(square_case(1, 8, 1, 4, 16, 3, 1), DType::f16));
  CHECK(!fuses(square_case(1, 3, 4, 4, 16, 3, 1), DType::f16));
  const Tensor x = poisoned_on_gpu(one.x(), DType::f32, kLast), w = poisoned_on_gpu(one.weight(), DType::f32, kLast);
  CHECK_THAT(
      error_of([&] { k::conv_bias_relu_pool_forward(k::plan_conv(x, w, one.options), x, w, {}, Out(x), {}, {}); }),
      ContainsText("there are no kernels for f32[1, 8, 4, 4]"));
}

}  // namespace tandem::test

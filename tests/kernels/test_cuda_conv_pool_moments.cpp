// Convolution that writes the 2x2 maxima of its result and leaves their moments, against the passes that do it apart;
// and gradients that leave out what no window has.
#include "tandem/kernels/conv/choice_cuda.h"
#include "tandem/kernels/conv/implicit_gemm/tile_shape.h"
#include "tandem/kernels/conv/operands.h"
#include "tandem/kernels/conv/plan.h"
#include "tandem/kernels/conv/tuning/tuner.h"
#include "tandem/kernels/float32_products.h"
#include "tandem/kernels/pool/max_pool2d.h"
#include "tandem/kernels/pool/pool2d_options.h"
#include "tests/kernels/conv_families.h"
#include "tests/kernels/moments_support.h"
#include "tests/kernels/scripted_conv_library.h"

namespace tandem::test {
namespace {

namespace k = tandem::kernels;
namespace gemm = k::cuda::implicit_gemm;
namespace stationary = k::cuda::stationary;
using gemm::Tile;
using k::ConvImpl;
using k::PassKind;

constexpr Tile kTiles[] = {Tile::wide, Tile::tall, Tile::small, Tile::narrow};
const k::Pool2dOptions kWindows{.kernel = {2, 2}, .stride = {2, 2}};

/// What it is computed from, on the GPU; bias may be undefined.
struct Operands {
  Tensor x, w, bias;
};

Operands operands_of(const ConvCase& one, DType dtype, bool whole) {
  const ConvInputs in(one, dtype, whole);
  return {on_gpu(in.x), on_gpu(in.w), whole ? on_gpu(in.bias) : Tensor()};
}

Shape pooled_shape(const ConvCase& one) { return k::conv_pool_output_shape(one.x(), one.weight(), one.options); }

/// Maxima and places are those of max_pool2d over what `forward` writes, bit for bit, with and without what may be
/// undefined; of these moments are left, in `parts` parts. `pool(g, x, w, bias, PooledMomentsOutput)`.
template <typename Pool, typename Forward>
void check_pooled_moments(const ConvCase& one, const Operands& in, std::int64_t parts, bool finite, Pool&& pool,
                          Forward&& forward) {
  const DType dtype = in.x.dtype();
  INFO(one.text() << " " << name_of(dtype) << (in.bias.defined() ? " with bias" : ""));
  const k::ConvGeometry g = one.geometry();
  const Shape shape = pooled_shape(one);
  const auto images = [&] { return poisoned_on_gpu(shape, dtype, kLast); };
  const auto places = [&] { return poisoned_on_gpu(shape, DType::u8, kLast); };
  const Tensor y = images(), positions = places(), alone = images(), expected = images(), winners = places();
  const Tensor moments = Tensor::full({3, parts, one.k}, -1.0, {.dtype = DType::f64, .device = kGpu});
  pool(g, in.x, in.w, in.bias, k::cuda::PooledMomentsOutput{Out(y), Out(positions), Out(moments)});
  const Tensor before = poisoned_on_gpu(one.y(), dtype, kLast);
  forward(g, in.x, in.w, k::cuda::Epilogue{.bias = in.bias}, Out(before));
  k::max_pool2d_forward(before, kWindows, Out(expected), Out(winners));
  CHECK(same_bits_on_gpu(y, expected));
  CHECK(same_bits_on_gpu(positions, winners));
  if (finite) CHECK(moments_difference(moments, expected) == "");
  pool(g, in.x, in.w, in.bias, k::cuda::PooledMomentsOutput{Out(alone), {}, {}});
  CHECK(same_bits_on_gpu(alone, expected));
  // And what the reference makes of the same numbers.
  const Tensor oracle = empty_f64(shape), oracle_winners = Tensor::empty(shape, {DType::u8, kLast, {}});
  k::reference::max_pool2d_forward(in_f64(before, kLast), kWindows, Out(oracle), Out(oracle_winners));
  if (finite) CHECK(difference(y, oracle) == "");
  CHECK(positions.to(Device{}).to_vector<int>() == oracle_winners.to_vector<int>());
}

k::ConvPlan pooled_plan(const Tensor& x, const Tensor& w, const k::Conv2dOptions& options, bool gradients = false) {
  return k::plan_conv(x, w, options,
                      {.forward = PassKind::forward_pool_moments, .grad_x = gradients, .grad_w = gradients});
}

/// The plan of a layer of zeros.
k::ConvPlan pooled_plan(const ConvCase& one, DType dtype, ConvImpl impl, bool gradients = false) {
  k::Conv2dOptions options = one.options;
  options.impl = impl;
  const TensorOptions there{.dtype = dtype, .layout = kLast, .device = kGpu};
  return pooled_plan(Tensor::zeros(one.x(), there), Tensor::zeros(one.weight(), there), options, gradients);
}

/// Odd and even sizes, tiles that end within an image, a stride, one window only, channels that fill no tile.
std::vector<ConvCase> shapes() {
  return {square_case(2, 24, 5, 7, 72, 3, 1), square_case(2, 8, 2, 2, 8, 1, 0), square_case(1, 8, 3, 3, 8, 1, 0),
          square_case(3, 16, 9, 8, 136, 3, 1, 2), square_case(1, 8, 12, 14, 40, 3, 1)};
}

/// A 1x1 convolution whose outputs are its inputs, or by `scale` of them.
Operands copying(const std::vector<float>& values, std::int64_t side, DType dtype, float scale) {
  constexpr std::int64_t kChannels = 8;
  const TensorOptions options{.layout = kLast};
  const Tensor x = Tensor::empty({1, kChannels, side, side}, options);
  const Tensor w = Tensor::zeros({kChannels, kChannels, 1, 1}, options);
  for (std::int64_t i = 0; i < x.numel(); ++i)
    Out(x).data<float>()[i] = values[static_cast<std::size_t>(i * 7 % 31) % values.size()];
  for (std::int64_t i = 0; i < kChannels; ++i) Out(w).data<float>()[i * kChannels + i] = scale;
  const auto there = [&](const Tensor& tensor) {
    return on_gpu(mapped(tensor, dtype, kLast, [](float value) { return value; }));
  };
  return {there(x), there(w), {}};
}

}  // namespace

TEST_CASE("2x2 maxima and their moments are all that the convolution before batch norm writes, by all tiles",
          "[cuda][conv]") {
  if (!has_gpu()) return;
  const auto check = [](const ConvCase& one, DType dtype, Tile tile, bool whole) {
    INFO("tile " << static_cast<int>(tile));
    check_pooled_moments(
        one, operands_of(one, dtype, whole), gemm::pool_moment_parts_by(tile, one.geometry()), true,
        [&](auto&&... arguments) { gemm::forward_pool_moments_by(tile, arguments...); },
        [&](auto&&... arguments) { gemm::forward_by(tile, arguments...); });
  };
  for (const ConvCase& one : shapes()) {
    const k::Float32ProductsScope scope(k::Float32Products::tf32);
    for (const Tile tile : kTiles) {
      for (const DType dtype : {DType::f16, DType::bf16, DType::f32})
        for (const bool whole : {true, false}) check(one, dtype, tile, whole);
      const k::Float32ProductsScope split(k::Float32Products::tf32x3);
      check(one, DType::f32, tile, true);
    }
  }
}

TEST_CASE("stationary weights pool on the way out and leave moments", "[cuda][conv]") {
  if (!has_gpu()) return;
  for (const ConvCase& one : {square_case(2, 24, 5, 7, 72, 3, 1), square_case(1, 64, 19, 35, 64, 3, 1),
                              square_case(3, 8, 2, 2, 8, 1, 0), square_case(1, 128, 9, 18, 40, 3, 1),
                              square_case(1, 40, 9, 18, 24, 3, 1), square_case(290, 8, 3, 3, 8, 2, 0)}) {
    for (const DType dtype : {DType::f16, DType::bf16})
      for (const bool whole : {true, false})
        check_pooled_moments(one, operands_of(one, dtype, whole), stationary::pool_moment_parts(one.geometry()), true,
                             stationary::forward_pool_moments, stationary::forward);
  }
}

TEST_CASE("moments of maxima far from zero keep their digits", "[cuda][conv]") {
  if (!has_gpu()) return;
  const k::Float32ProductsScope scope(k::Float32Products::tf32);
  const ConvCase one = square_case(2, 24, 9, 7, 72, 3, 1);
  const auto far = [&](DType dtype, double offset) {
    Operands in = operands_of(one, dtype, false);
    in.bias = Tensor::full({one.k}, offset, {.dtype = dtype, .device = kGpu});
    return in;
  };
  check_pooled_moments(one, far(DType::f32, 1000.0), gemm::pool_moment_parts(one.geometry()), true,
                       gemm::forward_pool_moments, gemm::forward);
  check_pooled_moments(one, far(DType::f16, 30.0), stationary::pool_moment_parts(one.geometry()), true,
                       stationary::forward_pool_moments, stationary::forward);
}

TEST_CASE("of equals the first, of NaN the last wins, and -0 stays, where maxima come from the convolution",
          "[cuda][conv]") {
  if (!has_gpu()) return;
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN(), kInf = std::numeric_limits<float>::infinity();
  const k::Float32ProductsScope scope(k::Float32Products::tf32);
  for (const std::int64_t side : {6, 7}) {
    const ConvCase one = square_case(1, 8, side, side, 8, 1, 0);
    for (const DType dtype : {DType::f16, DType::bf16, DType::f32}) {
      const auto check = [&](const Operands& in, bool finite) {
        check_pooled_moments(one, in, gemm::pool_moment_parts(one.geometry()), finite, gemm::forward_pool_moments,
                             gemm::forward);
        if (dtype == DType::f32) return;
        check_pooled_moments(one, in, stationary::pool_moment_parts(one.geometry()), finite,
                             stationary::forward_pool_moments, stationary::forward);
      };
      check(copying({1, 1, 2, 2, -1, -1, -3}, side, dtype, 1.0f), true);
      // Sums that round to -0 in f16.
      check(copying({-0x1p-14f, 0, -0x1p-14f, 0x1p-14f, -1}, side, dtype, 0x1p-14f), false);
      check(copying({1, kNaN, -1, kNaN, 0, -kInf}, side, dtype, 1.0f), false);
      check(copying({-kInf}, side, dtype, 1.0f), false);
    }
  }
  // What the last two rest upon: NaN in a sum makes all channels NaN, so that whole windows are, and -0 is there.
  const Tensor y = poisoned_on_gpu({1, 8, 6, 6}, DType::f16, kLast);
  const Operands in = copying({-0x1p-14f, 0, -0x1p-14f, 0x1p-14f, -1}, 6, DType::f16, 0x1p-14f);
  gemm::forward(square_case(1, 8, 6, 6, 8, 1, 0).geometry(), in.x, in.w, {}, Out(y));
  int negative_zeros = 0;
  for (const float value : y.to_vector<float>()) negative_zeros += value == 0.0f && std::signbit(value) ? 1 : 0;
  CHECK(negative_zeros > 0);
}

TEST_CASE("the entry point pools and leaves moments where kernels do, and says where not", "[cuda][conv]") {
  if (!has_gpu()) return;
  for (ConvCase one : {square_case(2, 24, 5, 7, 72, 3, 1), square_case(128, 8, 15, 14, 8, 2, 0)}) {
    one.options.impl = ConvImpl::fused;
    const Operands in = operands_of(one, DType::f16, true);
    // A bias at an odd address does not matter.
    const Tensor whole = Tensor::empty({in.bias.numel() + 1}, in.bias.options());
    const Tensor odd = whole.narrow(0, 1, in.bias.numel());
    odd.copy_from(in.bias);
    const k::ConvPlan plan = pooled_plan(in.x, in.w, one.options);
    CHECK(plan.runs_pool_with_moments());
    CHECK(!plan.runs_pool_with_relu());
    CHECK(!plan.runs_with_moments());
    for (const Tensor& bias : {in.bias, odd})
      check_pooled_moments(
          one, {in.x, in.w, bias}, plan.moment_parts, true,
          [&](const auto&, const Tensor& x, const Tensor& w, const Tensor& b, const auto& to) {
            k::conv2d_pool_forward(plan, x, w, b, to.y, to.positions, to.moments);
          },
          chosen_by(ConvImpl::fused).forward);
  }
  const auto runs = [](const ConvCase& one, DType dtype, ConvImpl impl = ConvImpl::fused) {
    return pooled_plan(one, dtype, impl).runs_pool_with_moments();
  };
  const ConvCase one = square_case(1, 8, 4, 5, 16, 3, 1);
  CHECK(runs(one, DType::f16));
  CHECK(!runs(one, DType::f32));
  CHECK(!runs(one, DType::f16, ConvImpl::reference));
  CHECK(!runs(square_case(1, 3, 4, 4, 16, 3, 1), DType::f16));
  CHECK(!runs(square_case(2, 8, 1, 4, 16, 3, 1), DType::f16));  // no whole window
  CHECK(!runs(square_case(1, 8, 3, 3, 16, 3, 1), DType::f16));  // one of them has no variance
  CHECK_THAT(std::string(stationary::obstacle(PassKind::forward_pool_moments,
                                              square_case(1, 8, 8, 1, 16, 3, 1).geometry(), {DType::f16, kGpu})),
             ContainsText("no whole window"));

  k::Conv2dOptions fused = one.options;
  fused.impl = ConvImpl::fused;
  const Operands in = operands_of(one, DType::f16, true);
  const k::ConvPlan plan = pooled_plan(in.x, in.w, fused);
  for (const bool of_x : {true, false}) {  // at an address that tensor cores do not take
    const Tensor& aligned = of_x ? in.x : in.w;
    const Tensor odd = Tensor::zeros({aligned.numel() + 1}, aligned.options(Layout::row_major))
                           .as_strided(aligned.shape(), aligned.strides(), 1);
    CHECK(!pooled_plan(of_x ? odd : in.x, of_x ? in.w : odd, fused).runs_pool_with_moments());
  }
  const Tensor y = poisoned_on_gpu(pooled_shape(one), DType::f16, kLast);
  const auto error = [&](const k::ConvPlan& by, const Tensor& maxima, const Tensor& places, const Tensor& moments) {
    return error_of([&] { k::conv2d_pool_forward(by, in.x, in.w, in.bias, Out(maxima), Out(places), Out(moments)); });
  };
  CHECK_THAT(error(k::plan_conv(in.x, in.w, fused), y, {}, {}),
             ContainsText("there are no kernels for f16[1, 8, 4, 5]"));
  for (const PassKind other : {PassKind::forward_pool, PassKind::forward_moments})
    CHECK_THAT(error(k::plan_conv(in.x, in.w, fused, {.forward = other}), y, {}, {}),
               ContainsText("there are no kernels"));
  CHECK_THAT(error(plan, in.x, {}, {}), ContainsText("y should have shape [1, 16, 2, 2]"));
  CHECK_THAT(error(plan, y, y, {}), ContainsText("positions should be u8"));
  CHECK_THAT(error(plan, y, {}, y), ContainsText("moments must be f64 [3, 1, 16], got f16[1, 16, 2, 2]"));
  // Nor does a plan for this one run another.
  CHECK_THAT(error_of([&] { k::conv_bias_relu_pool_forward(plan, in.x, in.w, in.bias, Out(y), {}, {}); }),
             ContainsText("there are no kernels"));
  CHECK_THAT(error_of([&] { k::conv2d_forward_with_moments(plan, in.x, in.w, in.bias, Out(y), {}); }),
             ContainsText("there are no kernels"));
}

TEST_CASE("gradients leave out outputs that no window has, by every family", "[cuda][conv]") {
  if (!has_gpu()) return;
  std::vector<FamilyCase> cases = family_cases();
  for (const FamilyCase& more : warpgroup_cases()) cases.push_back(more);
  std::size_t odd = 0;
  for (const FamilyCase& one : cases) {
    INFO(one.text());
    const k::Float32ProductsScope scope(one.products);
    const k::ConvGeometry g = one.one.geometry(), whole = k::whole_windows(g);
    odd += whole.p != g.p || whole.q != g.q ? 1 : 0;
    const ConvInputs in(one.one, one.dtype, true);
    // The gradient of the whole windows, and the same among zeros.
    const Tensor grad_y = drawn({whole.n, whole.k, whole.p, whole.q}, one.dtype, 4, true, kLast);
    const Tensor padded = empty_f64(one.one.y());
    Out(padded).zero();
    padded.narrow(2, 0, whole.p).narrow(3, 0, whole.q).copy_from(in_f64(grad_y, kLast));
    const Tensor wanted_x = empty_f64(one.one.x()), wanted_w = empty_f64(one.one.weight());
    k::reference::conv2d_backward_input(padded, in_f64(in.w, kLast), g, Out(wanted_x));
    k::reference::conv2d_backward_weight(in_f64(in.x, kLast), padded, g, Out(wanted_w));
    const Tensor grad_x = poisoned_on_gpu(one.one.x(), one.dtype, kLast);
    const Tensor grad_w = poisoned_on_gpu(one.one.weight(), one.dtype, kLast);
    one.family.backward_input(whole, on_gpu(grad_y), {}, on_gpu(in.w), Out(grad_x));
    one.family.backward_weight(whole, on_gpu(in.x), on_gpu(grad_y), {}, Out(grad_w));
    CHECK(difference(grad_x, wanted_x) == "");
    CHECK(difference(grad_w, wanted_w) == "");
  }
  CHECK(odd >= cases.size() / 2);
}

TEST_CASE("a plan leaves them out where our kernels compute the gradients", "[cuda][conv]") {
  if (!has_gpu()) return;
  const ConvCase one = square_case(2, 16, 7, 8, 24, 3, 1);
  const auto geometry = [&](ConvImpl impl = ConvImpl::automatic) {
    const k::ConvPlan plan = pooled_plan(one, DType::f16, impl, true);
    CHECK(plan.runs_pool_with_moments());
    return plan.geometry;
  };
  {
    const k::ConvLibraryScope none(nullptr);
    CHECK(geometry() == k::whole_windows(one.geometry()));
    CHECK(k::whole_windows(one.geometry()).p == 6);
    CHECK(k::whole_windows(one.geometry()).q == 8);
    CHECK(!k::pads_both_sides_alike(geometry()));
  }
  ScriptedConvLibrary library;
  const k::ConvLibraryScope scope(&library);
  k::conv_tuner().clear();
  CHECK(geometry(ConvImpl::fused) == k::whole_windows(one.geometry()));
  // A layer with so little work is not for a library, but a tuner may find otherwise.
  CHECK(geometry() == k::whole_windows(one.geometry()));
  k::conv_tuner().add({DeviceType::cuda, PassKind::forward, DType::f16, one.geometry()}, {"tile", {{"tile", 1.0}}});
  CHECK(geometry() == one.geometry());
  k::conv_tuner().clear();
  // With more of it the library takes the gradients, and knows padding that is the same on both sides.
  const ConvCase large = square_case(64, 32, 31, 31, 64, 3, 1);
  const k::ConvPlan plan = pooled_plan(large, DType::f16, ConvImpl::automatic, true);
  CHECK(plan.runs_pool_with_moments());  // weights stay in shared memory
  CHECK(plan.backward_weight.library == &library);
  CHECK(plan.geometry == large.geometry());
  CHECK(k::cuda::select_library(k::whole_windows(large.geometry()), ConvImpl::automatic, k::ConvPass::backward_weight,
                                {DType::f16, kGpu}) == nullptr);
}

TEST_CASE("where there is a library, maxima and moments come along as long as that saves more", "[cuda][conv]") {
  if (!has_gpu()) return;
  ScriptedConvLibrary library;
  const k::ConvLibraryScope scope(&library);
  k::conv_tuner().clear();
  const auto runs = [&](const ConvCase& one) {
    return pooled_plan(one, DType::f16, ConvImpl::automatic).runs_pool_with_moments();
  };
  CHECK(runs(square_case(64, 24, 31, 31, 64, 3, 1)));    // weights stay in shared memory
  CHECK(!runs(square_case(64, 64, 16, 16, 256, 3, 1)));  // 576 terms: more than 4.5 bytes are worth
  CHECK(runs(square_case(64, 128, 16, 16, 256, 1, 0)));
  // Few outputs of whole windows: less is computed than by the library.
  CHECK(runs(square_case(256, 64, 3, 3, 256, 3, 1)));
  // Who asks for cuDNN gets it.
  const ConvCase one = square_case(64, 24, 31, 31, 64, 3, 1);
  k::ConvPlan asked = plan_of(one.geometry(), ConvImpl::cudnn, DType::f16);
  k::cuda::plan_conv({.forward = PassKind::forward_pool_moments}, poisoned_on_gpu(one.x(), DType::f16, kLast),
                     poisoned_on_gpu(one.weight(), DType::f16, kLast), asked);
  CHECK(asked.forward.library == &library);
  CHECK(!asked.fuses_pool);
}

TEST_CASE("maxima and moments are measured together with the convolution and apart", "[cuda][conv][library]") {
  if (!has_gpu()) return;
  k::ConvTuner& tuner = k::conv_tuner();
  for (const ConvCase& one : {square_case(2, 8, 5, 4, 16, 3, 1), square_case(128, 8, 15, 14, 8, 2, 0)}) {
    INFO(one.text());
    tuner.clear();
    const auto parts = [&] { return pooled_plan(one, DType::f16, ConvImpl::automatic).moment_parts; };
    tuner.set_measuring(true);
    parts();
    tuner.set_measuring(false);
    for (const auto& [key, result] : tuner.results()) {
      if (key.pass != PassKind::forward_pool_moments) continue;
      CHECK(result.microseconds.size() == (stationary::pays(key.pass, one.geometry()) ? 3 : 2));
      for (const auto& [chosen, time] : result.microseconds) {
        INFO(chosen);
        tuner.add(key, {chosen, result.microseconds});
        CHECK(parts() == (chosen == "apart"        ? 0
                          : chosen == "stationary" ? stationary::pool_moment_parts(one.geometry())
                                                   : gemm::pool_moment_parts(one.geometry())));
      }
    }
    CHECK(tuner.results().size() == 2);  // and the convolution alone
  }
  tuner.clear();
}

}  // namespace tandem::test

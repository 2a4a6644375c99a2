// Who convolves on a GPU where there is a library: by rule, and among its plans by measurement.
#include "tandem/kernels/conv/choice_cuda.h"
#include "tandem/kernels/conv/cudnn/conv_library.h"
#include "tandem/kernels/conv/tuning/tuner.h"
#include "tests/kernels/cuda_conv_support.h"
#include "tests/kernels/scripted_conv_library.h"

#include <string_view>

namespace tandem::test {
namespace {

namespace k = tandem::kernels;
using k::ConvImpl;
using k::ConvPass;

/// A library that takes everything, in place of the one that is there; and a tuner that knows nothing.
struct WithLibrary {
  ScriptedConvLibrary library;
  k::ConvLibraryScope scope{&library};
  WithLibrary() { k::conv_tuner().clear(); }
  ~WithLibrary() { k::conv_tuner().clear(); }
};

/// Tensors of a layer, with nothing in them.
struct Layer {
  k::ConvGeometry g;
  k::Conv2dOptions options;
  Tensor x, w, y;

  Layer(const ConvCase& one, DType dtype)
      : g(one.geometry()),
        options(one.options),
        x(on_gpu(one.x(), dtype)),
        w(on_gpu(one.weight(), dtype)),
        y(on_gpu(one.y(), dtype)) {}
  static Tensor on_gpu(const Shape& shape, DType dtype) {
    return Tensor::empty(shape, {.dtype = dtype, .layout = Layout::channels_last, .device = kGpu});
  }

  bool goes_to_library(ConvPass pass, ConvImpl impl = ConvImpl::automatic) const {
    return k::cuda::select_library(g, impl, pass, k::cuda::operands_of(y.dtype(), x, w, y)) != nullptr;
  }
};

}  // namespace

TEST_CASE("where there is a library, first layers stay with our kernels", "[cuda][conv]") {
  if (!has_gpu()) return;
  const WithLibrary with;
  const Layer first(square_case(32, 3, 32, 32, 32, 3, 1), DType::f16),
      grey(square_case(128, 1, 28, 28, 32, 3, 1), DType::bf16);
  for (const Layer* layer : {&first, &grey}) {
    CHECK(!layer->goes_to_library(ConvPass::forward));
    CHECK(!layer->goes_to_library(ConvPass::backward_weight));
    CHECK(layer->goes_to_library(ConvPass::backward_input));  // no kernels for that
    CHECK(layer->goes_to_library(ConvPass::forward, ConvImpl::cudnn));
  }
  // 147 terms take longer to sum up than to store; whole eights of channels are for tensor cores; f32 has none.
  CHECK(Layer(square_case(8, 3, 64, 64, 64, 7, 3), DType::f16).goes_to_library(ConvPass::forward));
  CHECK(Layer(square_case(8, 64, 16, 16, 64, 3, 1), DType::f16).goes_to_library(ConvPass::forward));
  CHECK(Layer(square_case(32, 3, 32, 32, 32, 3, 1), DType::f32).goes_to_library(ConvPass::forward));
}

TEST_CASE("where there is a library, what follows is fused as long as that saves more", "[cuda][conv]") {
  if (!has_gpu()) return;
  const WithLibrary with;
  const auto fuses_pool = [](const Layer& layer) { return test::fuses_pool(layer.x, layer.w, layer.options); };
  const auto fuses_moments = [](const Layer& layer) { return moment_parts(layer.x, layer.w, layer.options) > 0; };
  const Layer second(square_case(32, 32, 32, 32, 64, 3, 1), DType::f16),
      third(square_case(32, 64, 16, 16, 128, 3, 1), DType::f16),
      fourth(square_case(32, 128, 16, 16, 256, 3, 1), DType::f16),
      narrow(square_case(64, 128, 16, 16, 64, 1, 0), DType::bf16);
  for (const Layer* layer : {&second, &third, &fourth, &narrow}) CHECK(layer->goes_to_library(ConvPass::forward));
  CHECK(fuses_pool(second));
  CHECK(fuses_pool(third));
  CHECK(!fuses_pool(fourth));  // 1152 terms of a sum: more than 12 bytes are worth
  CHECK(fuses_pool(narrow));
  CHECK(fuses_moments(second));  // weights stay in shared memory
  CHECK(!fuses_moments(third));  // 576 terms: more than 2 bytes are worth
  CHECK(!fuses_moments(fourth));
  CHECK(fuses_moments(narrow));
  // Who asks for cuDNN gets it.
  for (const auto pass : {k::PassKind::forward_pool, k::PassKind::forward_moments}) {
    k::ConvPlan asked = plan_of(second.g, ConvImpl::cudnn, DType::f16);
    k::cuda::plan_conv({.forward = pass}, second.x, second.w, asked);
    CHECK(asked.forward.library == &with.library);
    CHECK(!asked.fuses_pool);
    CHECK(asked.moment_parts == 0);
  }
}

TEST_CASE("where there is a library, auto keeps the passes in which our kernels beat it", "[cuda][conv]") {
  if (!has_gpu()) return;
  const WithLibrary with;
  const k::cuda::Operands operands{DType::f16, kGpu};
  const auto runner = [&](const ConvCase& one, k::PassKind pass, ConvImpl impl) -> std::string_view {
    const k::ConvRunner chosen = k::cuda::choose_runner(pass, one.geometry(), impl, operands, operands);
    return chosen.library != nullptr ? "library" : chosen.family->name;
  };
  const ConvCase few = square_case(128, 32, 32, 32, 64, 3, 1), wide = square_case(128, 128, 16, 16, 128, 3, 1);
  const bool has_warpgroups = k::cuda::warpgroup::obstacle(k::PassKind::forward, wide.geometry(), operands).empty();
  CHECK(runner(few, k::PassKind::forward, ConvImpl::automatic) == "stationary");
  CHECK(runner(few, k::PassKind::backward_input, ConvImpl::automatic) == "stationary");
  CHECK(runner(few, k::PassKind::backward_weight, ConvImpl::automatic) == "library");
  CHECK(runner(wide, k::PassKind::forward, ConvImpl::automatic) == "library");
  CHECK(runner(wide, k::PassKind::backward_input, ConvImpl::automatic) == (has_warpgroups ? "warpgroup" : "library"));
  CHECK(runner(wide, k::PassKind::backward_weight, ConvImpl::automatic) == "library");
  for (const ConvCase& one : {few, wide})  // who asks for cuDNN gets it
    for (const auto pass : {k::PassKind::forward, k::PassKind::backward_input, k::PassKind::backward_weight})
      CHECK(runner(one, pass, ConvImpl::cudnn) == "library");
}

TEST_CASE("warpgroups that pay come before a fusion that saves less", "[cuda][conv]") {
  if (!has_gpu()) return;
  const Layer third(square_case(32, 64, 16, 16, 128, 3, 1), DType::f16),
      fourth(square_case(32, 128, 16, 16, 256, 3, 1), DType::f16);
  const bool has_warpgroups = k::cuda::warpgroup::obstacle(k::PassKind::forward, fourth.g, {DType::f16, kGpu}).empty();
  k::Conv2dOptions fused = fourth.options;
  fused.impl = ConvImpl::fused;
  CHECK(test::fuses_pool(third.x, third.w, fused));
  CHECK(test::fuses_pool(fourth.x, fourth.w, fused) == !has_warpgroups);
  CHECK((moment_parts(third.x, third.w, fused) > 0) == !has_warpgroups);
}

TEST_CASE("a library masks for the layer below only where a tuner can compare", "[cuda][conv]") {
  if (!has_gpu()) return;
  WithLibrary with;
  const Layer layer(square_case(2, 8, 5, 4, 16, 3, 1), DType::f16);
  k::ConvPlan plan = plan_of(layer.g, ConvImpl::automatic, DType::f16);
  plan.backward_input = k::ConvRunner{.library = &with.library};
  CHECK_FALSE(k::conv_fuses_layer_below(plan, layer.x, layer.w));
  k::conv_tuner().set_measuring(true);
  CHECK(k::conv_fuses_layer_below(plan, layer.x, layer.w));
  with.library.refused = {ConvPass::backward_input_relu};
  CHECK_FALSE(k::conv_fuses_layer_below(plan, layer.x, layer.w));
  // Our kernels do that work where they are planned, whether there is a tuner or not.
  k::conv_tuner().set_measuring(false);
  plan.backward_input = k::ConvRunner{.family = &k::cuda::conv_family("implicit_gemm")};
  CHECK(k::conv_fuses_layer_below(plan, layer.x, layer.w));
}

TEST_CASE("each graph of a library has its own number of plans", "[cuda][conv]") {
  if (!has_gpu()) return;
  WithLibrary with;
  with.library.plans = 3;
  with.library.plans_of = {{ConvPass::backward_input_relu_bias, 1}, {ConvPass::forward_bias_relu, 2}};
  const ConvCase one = square_case(2, 8, 5, 4, 16, 3, 1);
  const k::ConvGeometry g = one.geometry();
  const ConvInputs in(one, DType::f16, true);
  const Tensor x = on_gpu(in.x), w = on_gpu(in.w), bias = on_gpu(in.bias), grad_y = on_gpu(in.grad_y);
  const Tensor y = poisoned_on_gpu(one.y(), DType::f16, Layout::channels_last), grad_x = empty_like(x);
  const Tensor bits = on_gpu(random_mask(one.x(), 6)), grad_bias = poisoned_on_gpu({one.c}, DType::f16);
  k::ConvTuner& tuner = k::conv_tuner();
  tuner.set_measuring(true);
  const auto plans = [&](k::PassKind pass, const k::TunedWork& work) {
    const auto results = tuner.results();
    const auto found = results.find({DeviceType::cuda, pass, DType::f16, g, work});
    if (found == results.end()) return -1;
    int count = 0;
    for (const auto& [name, time] : found->second.microseconds) count += name.starts_with("cudnn") ? 1 : 0;
    return count;
  };
  const k::ConvPlan plan = plan_of(g, ConvImpl::automatic, DType::f16);
  const auto backward = [&](const k::LayerBelow& below) {
    k::cuda::conv_backward(plan, {.x = x, .w = w, .grad_y = grad_y}, {.x = Out(grad_x)}, below);
  };
  backward({});
  CHECK(plans(k::PassKind::backward_input, {}) == 3);
  backward({bits, Out(grad_bias)});
  CHECK(plans(k::PassKind::backward_input, {.mask = true, .sums = true, .gate = true}) == 1);
  k::cuda::conv_forward(plan, x, w, {}, Out(y));
  CHECK(plans(k::PassKind::forward, {}) == 3);
  k::cuda::conv_forward(plan, x, w, {.bias = bias, .relu = true}, Out(y));
  CHECK(plans(k::PassKind::forward, {.bias = true, .relu = true}) == 2);
  // Each is measured once, in whatever order the layers come.
  const std::int64_t measured = tuner.measured();
  CHECK(measured == 4);
  backward({});
  k::cuda::conv_forward(plan, x, w, {}, Out(y));
  backward({bits, Out(grad_bias)});
  k::cuda::conv_forward(plan, x, w, {.bias = bias, .relu = true}, Out(y));
  CHECK(tuner.measured() == measured);
}

TEST_CASE("layers of one geometry do not overwrite each other's measurements", "[cuda][conv]") {
  if (!has_gpu()) return;
  k::ConvTuner& tuner = k::conv_tuner();
  const k::ConvLibraryScope none(nullptr);
  const ConvCase one = square_case(2, 8, 5, 4, 16, 3, 1);
  const ConvInputs in(one, DType::f16, true);
  const Tensor x = on_gpu(in.x), w = on_gpu(in.w), y = poisoned_on_gpu(one.y(), DType::f16, Layout::channels_last);
  // The same numbers at an address that tensor cores do not take.
  const Tensor memory = Tensor::zeros({x.numel() + 1}, {.dtype = DType::f16, .device = kGpu});
  const Tensor odd = memory.as_strided(x.shape(), x.strides(), 1);
  odd.copy_from(x);
  tuner.clear();
  tuner.set_measuring(true);
  for (int round = 0; round < 2; ++round)
    for (const Tensor& image : {x, odd})
      for (const bool relu : {false, true})
        k::cuda::conv_forward(plan_of(one.geometry(), ConvImpl::automatic, DType::f16), image, w, {.relu = relu},
                              Out(y));
  CHECK(tuner.measured() == 2);  // at the odd address there is nobody to compare with
  CHECK(tuner.results().size() == 2);
  for (const auto& [key, result] : tuner.results()) CHECK(result.microseconds.contains("implicit_gemm"));
  tuner.clear();
}

}  // namespace tandem::test

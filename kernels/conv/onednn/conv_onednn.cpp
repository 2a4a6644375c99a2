// f32 convolution by oneDNN (2.x or 3.x), on NHWC images as they are; weights are reordered to what the library likes.
#include "core/error.h"
#include "kernels/conv/implementations.h"
#include "kernels/conv/sign_mask.h"
#include "kernels/gemm/scratch.h"

#include <dnnl.hpp>

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <string_view>
#include <utility>

namespace tandem::kernels::onednn {
namespace {

using dnnl::memory;
using Dims = memory::dims;
using Tag = memory::format_tag;

enum class Pass { forward, forward_relu, backward_input, backward_weight };

constexpr std::size_t kMostPlans = 256;

dnnl::engine& engine() {
  static dnnl::engine cpu(dnnl::engine::kind::cpu, 0);
  return cpu;
}

memory::desc described(const Dims& dims, Tag tag) { return {dims, memory::data_type::f32, tag}; }

Dims weight_dims(const ConvGeometry& g) {
  return g.groups == 1 ? Dims{g.k, g.c, g.r, g.s} : Dims{g.groups, g.group_k(), g.group_c(), g.r, g.s};
}

/// Our KRSC weights in the library's terms.
memory::desc our_weights(const ConvGeometry& g) {
  return described(weight_dims(g), g.groups == 1 ? Tag::ohwi : Tag::gohwi);
}

/// Padding after the last row or column, from the sizes.
std::int64_t padding_after(std::int64_t in, std::int64_t kernel, std::int64_t stride, std::int64_t padding,
                           std::int64_t dilation, std::int64_t out) {
  return (out - 1) * stride + dilation * (kernel - 1) + 1 - in - padding;
}

/// Makes a primitive descriptor in either API: 2.x goes through an operation descriptor.
template <typename Primitive, typename... Args>
typename Primitive::primitive_desc make_descriptor(const dnnl::primitive_attr& attributes, Args&&... args) {
#if DNNL_VERSION_MAJOR >= 3
  return {engine(), std::forward<Args>(args)..., attributes};
#else
  return {{std::forward<Args>(args)...}, attributes, engine()};
#endif
}

/// A gradient's descriptor also takes the forward one as a hint.
template <typename Primitive, typename Hint, typename... Args>
typename Primitive::primitive_desc make_gradient_descriptor(const Hint& hint, Args&&... args) {
#if DNNL_VERSION_MAJOR >= 3
  return {engine(), std::forward<Args>(args)..., hint};
#else
  return {{std::forward<Args>(args)...}, engine(), hint};
#endif
}

/// A primitive, and how it wants its weights.
struct Plan {
  dnnl::primitive primitive;
  memory::desc weights;
};

Plan make_plan(const ConvGeometry& g, Pass pass) {
  using dnnl::algorithm;
  const memory::desc x = described({g.n, g.c, g.h, g.w}, Tag::nhwc), y = described({g.n, g.k, g.p, g.q}, Tag::nhwc);
  const memory::desc w = described(weight_dims(g), Tag::any), bias = described({g.k}, Tag::a);
  const Dims stride{g.stride_h, g.stride_w}, dilation{g.dilation_h - 1, g.dilation_w - 1}, before{g.pad_h, g.pad_w};
  const Dims after{padding_after(g.h, g.r, g.stride_h, g.pad_h, g.dilation_h, g.p),
                   padding_after(g.w, g.s, g.stride_w, g.pad_w, g.dilation_w, g.q)};
  dnnl::primitive_attr attributes;
  if (pass == Pass::forward_relu) {
    dnnl::post_ops after_sum;
#if DNNL_VERSION_MAJOR >= 3
    after_sum.append_eltwise(algorithm::eltwise_relu, 0.0f, 0.0f);
#else
    after_sum.append_eltwise(1.0f, algorithm::eltwise_relu, 0.0f, 0.0f);
#endif
    attributes.set_post_ops(after_sum);
  }
  const auto forward = make_descriptor<dnnl::convolution_forward>(attributes, dnnl::prop_kind::forward_training,
                                                                  algorithm::convolution_direct, x, w, bias, y, stride,
                                                                  dilation, before, after);
  if (pass == Pass::backward_input) {
    const auto descriptor = make_gradient_descriptor<dnnl::convolution_backward_data>(
        forward, algorithm::convolution_direct, x, w, y, stride, dilation, before, after);
    return {dnnl::convolution_backward_data(descriptor), descriptor.weights_desc()};
  }
  if (pass == Pass::backward_weight) {
    const auto descriptor = make_gradient_descriptor<dnnl::convolution_backward_weights>(
        forward, algorithm::convolution_direct, x, w, bias, y, stride, dilation, before, after);
    return {dnnl::convolution_backward_weights(descriptor), descriptor.diff_weights_desc()};
  }
  return {dnnl::convolution_forward(forward), forward.weights_desc()};
}

/// Making a primitive compiles code: each is made once per geometry.
Plan plan_for(const ConvGeometry& g, Pass pass) {
  static std::mutex mutex;
  using Key = std::array<std::int64_t, 16>;
  static std::map<Key, Plan> plans;
  const Key key{g.n,
                g.c,
                g.h,
                g.w,
                g.k,
                g.r,
                g.s,
                g.p,
                g.q,
                g.groups,
                g.stride_h,
                g.stride_w,
                g.pad_h,
                g.pad_w,
                g.dilation_h * 65536 + g.dilation_w,
                static_cast<std::int64_t>(pass)};
  const std::scoped_lock lock(mutex);
  const auto found = plans.find(key);
  if (found != plans.end()) return found->second;
  if (plans.size() >= kMostPlans) plans.clear();
  return plans.emplace(key, make_plan(g, pass)).first->second;
}

memory wrap(const memory::desc& desc, const void* data) { return {desc, engine(), const_cast<void*>(data)}; }

std::int64_t floats(const memory::desc& desc) { return static_cast<std::int64_t>(desc.get_size() / sizeof(float)); }

/// Turns the library's exceptions into ours.
template <typename Body>
void run(std::string_view pass, const ConvGeometry& g, Body&& body) {
  try {
    dnnl::stream stream(engine());
    body(stream);
    stream.wait();
  } catch (const dnnl::error& error) {
    fail("conv2d: oneDNN failed in {} of x [{}, {}, {}, {}], w [{}, {}, {}, {}]: {}; use --conv-impl auto", pass, g.n,
         g.c, g.h, g.w, g.k, g.group_c(), g.r, g.s, error.what());
  }
}

}  // namespace

bool supports(const ConvGeometry& g) {
  // The library's own limit is that what hangs over the last row is not negative padding of more than the image.
  return g.input_numel() > 0 && g.output_numel() > 0;
}

void forward(const ConvGeometry& g, const float* x, const float* w, const ConvEpilogue& epilogue, float* y) {
  run("the forward pass", g, [&](dnnl::stream& stream) {
    const Plan plan = plan_for(g, epilogue.relu ? Pass::forward_relu : Pass::forward);
    const Scratch packed(floats(plan.weights)), zeros(epilogue.bias == nullptr ? g.k : 1);
    if (epilogue.bias == nullptr) std::fill_n(zeros.data(), g.k, 0.0f);
    memory ours = wrap(our_weights(g), w), weights = wrap(plan.weights, packed.data());
    dnnl::reorder(ours, weights).execute(stream, ours, weights);
    plan.primitive.execute(
        stream, {{DNNL_ARG_SRC, wrap(described({g.n, g.c, g.h, g.w}, Tag::nhwc), x)},
                 {DNNL_ARG_WEIGHTS, weights},
                 {DNNL_ARG_BIAS, wrap(described({g.k}, Tag::a), epilogue.bias ? epilogue.bias : zeros.data())},
                 {DNNL_ARG_DST, wrap(described({g.n, g.k, g.p, g.q}, Tag::nhwc), y)}});
  });
  if (epilogue.mask != nullptr) write_sign_mask(y, g.output_numel(), epilogue.mask);
}

void backward_input(const ConvGeometry& g, MaskedGradient<float> grad_y, const float* w, float* grad_x) {
  const DenseGradient<float> dense(grad_y, g, false);
  run("the input gradient", g, [&](dnnl::stream& stream) {
    const Plan plan = plan_for(g, Pass::backward_input);
    const Scratch packed(floats(plan.weights));
    memory ours = wrap(our_weights(g), w), weights = wrap(plan.weights, packed.data());
    dnnl::reorder(ours, weights).execute(stream, ours, weights);
    plan.primitive.execute(stream,
                           {{DNNL_ARG_DIFF_DST, wrap(described({g.n, g.k, g.p, g.q}, Tag::nhwc), dense.gradient.data)},
                            {DNNL_ARG_WEIGHTS, weights},
                            {DNNL_ARG_DIFF_SRC, wrap(described({g.n, g.c, g.h, g.w}, Tag::nhwc), grad_x)}});
  });
}

void backward_weight(const ConvGeometry& g, const float* x, MaskedGradient<float> grad_y, float* grad_w,
                     float* grad_bias) {
  const DenseGradient<float> dense(grad_y, g, false);
  run("the weight gradient", g, [&](dnnl::stream& stream) {
    const Plan plan = plan_for(g, Pass::backward_weight);
    const Scratch packed(floats(plan.weights)), unused(g.k);
    memory ours = wrap(our_weights(g), grad_w), weights = wrap(plan.weights, packed.data());
    plan.primitive.execute(
        stream, {{DNNL_ARG_SRC, wrap(described({g.n, g.c, g.h, g.w}, Tag::nhwc), x)},
                 {DNNL_ARG_DIFF_DST, wrap(described({g.n, g.k, g.p, g.q}, Tag::nhwc), dense.gradient.data)},
                 {DNNL_ARG_DIFF_WEIGHTS, weights},
                 {DNNL_ARG_DIFF_BIAS, wrap(described({g.k}, Tag::a), grad_bias ? grad_bias : unused.data())}});
    dnnl::reorder(weights, ours).execute(stream, weights, ours);
  });
}

}  // namespace tandem::kernels::onednn

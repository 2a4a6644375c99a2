// f32 convolution by oneDNN (2.x or 3.x), on NHWC images as they are; weights are reordered to what the library likes.
//
// The library comes with OpenMP threads of its own. They would spin for milliseconds after each of its calls, on cores
// that ours need, and a process made by fork() would wait for them for ever. So the images are dealt out to our
// threads, or rows of them where there are fewer images than threads, and each of ours calls the library for a single
// one.
#include "tandem/core/error.h"
#include "tandem/core/parallel.h"
#include "tandem/kernels/conv/onednn/one_library_thread.h"
#include "tandem/kernels/conv/onednn/onednn.h"
#include "tandem/kernels/conv/onednn/parts.h"
#include "tandem/kernels/conv/sign_mask.h"
#include "tandem/kernels/gemm/scratch.h"

#include <dnnl.hpp>

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

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

/// Scratch memory is ours to give: what the library keeps is one thread's.
dnnl::primitive_attr default_attributes() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
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
  return {engine(), std::forward<Args>(args)..., hint, default_attributes()};
#else
  return {{std::forward<Args>(args)...}, default_attributes(), engine(), hint};
#endif
}

/// A primitive, how it wants its weights, and the scratch memory that it takes.
struct Plan {
  dnnl::primitive primitive;
  memory::desc weights, scratch;
};

Plan make_plan(const ConvGeometry& g, Pass pass) {
  using dnnl::algorithm;
  const memory::desc x = described({g.n, g.c, g.h, g.w}, Tag::nhwc), y = described({g.n, g.k, g.p, g.q}, Tag::nhwc);
  const memory::desc w = described(weight_dims(g), Tag::any), bias = described({g.k}, Tag::a);
  const Dims stride{g.stride_h, g.stride_w}, dilation{g.dilation_h - 1, g.dilation_w - 1}, before{g.pad_h, g.pad_w};
  const Dims after{padding_after(g.h, g.r, g.stride_h, g.pad_h, g.dilation_h, g.p),
                   padding_after(g.w, g.s, g.stride_w, g.pad_w, g.dilation_w, g.q)};
  dnnl::primitive_attr attributes = default_attributes();
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
    return {dnnl::convolution_backward_data(descriptor), descriptor.weights_desc(), descriptor.scratchpad_desc()};
  }
  if (pass == Pass::backward_weight) {
    const auto descriptor = make_gradient_descriptor<dnnl::convolution_backward_weights>(
        forward, algorithm::convolution_direct, x, w, bias, y, stride, dilation, before, after);
    return {dnnl::convolution_backward_weights(descriptor), descriptor.diff_weights_desc(),
            descriptor.scratchpad_desc()};
  }
  return {dnnl::convolution_forward(forward), forward.weights_desc(), forward.scratchpad_desc()};
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

/// As many floats as hold it: scratch memory is counted in bytes, and not always in whole floats.
std::int64_t floats(const memory::desc& desc) {
  return static_cast<std::int64_t>((desc.get_size() + sizeof(float) - 1) / sizeof(float));
}

/// Whether there is no layout. In 3.x that is a null handle, which answers no question, not even is_zero().
bool is_missing(const memory::desc& desc) {
#if DNNL_VERSION_MAJOR >= 3
  return desc.get(/*allow_empty=*/true) == nullptr;
#else
  return desc.is_zero();
#endif
}

/// Calls body(part) for all parts, each by one of our threads.
template <typename Body>
void for_each_part(const std::vector<Part>& parts, Body&& body) {
  parallel_for(std::ssize(parts), 1, [&](std::int64_t begin, std::int64_t end) {
    const OneLibraryThread one;
    for (std::int64_t number = begin; number < end; ++number) body(parts[static_cast<std::size_t>(number)]);
  });
}

/// Turns the library's exceptions into ours.
template <typename Body>
void guarded(std::string_view pass, const ConvGeometry& g, Body&& body) {
  try {
    body();
  } catch (const dnnl::error& error) {
    fail("conv2d: oneDNN failed in {} of x [{}, {}, {}, {}], w [{}, {}, {}, {}]: {}; choose impl auto", pass, g.n, g.c,
         g.h, g.w, g.k, g.group_c(), g.r, g.s, error.what());
  }
}

/// The plan of each part.
std::vector<Plan> plans_for(const std::vector<Part>& parts, Pass pass) {
  const OneLibraryThread one;
  std::vector<Plan> plans;
  for (const Part& part : parts) plans.push_back(plan_for(part.g, pass));
  return plans;
}

using Arguments = std::unordered_map<int, memory>;

void execute(const Plan& plan, Arguments arguments) {
  const Scratch scratch(std::max<std::int64_t>(1, floats(plan.scratch)));
  arguments.emplace(DNNL_ARG_SCRATCHPAD, wrap(plan.scratch, scratch.data()));
  dnnl::stream stream(engine());
  plan.primitive.execute(stream, arguments);
  stream.wait();
}

void reorder(memory from, memory to) {
  const OneLibraryThread one;
  dnnl::stream stream(engine());
  dnnl::reorder(from, to).execute(stream, from, to);
  stream.wait();
}

/// Copies the weights of `g` from one layout into another, some outputs (or groups) by each of our threads where both
/// layouts can be cut there.
void reorder_weights(const ConvGeometry& g, const memory::desc& from, const float* source, const memory::desc& to,
                     float* target) {
  constexpr std::int64_t kBlock = 64;  // a multiple of the blocks in the library's layouts
  const Dims whole = weight_dims(g);
  const std::int64_t blocks = (whole[0] + kBlock - 1) / kBlock;
  const auto cut = [&](const memory::desc& desc, std::int64_t begin, std::int64_t end) {
    Dims dims = whole, first(whole.size(), 0);
    first[0] = begin * kBlock;
    dims[0] = std::min(whole[0], end * kBlock) - first[0];
    return desc.submemory_desc(dims, first, /*allow_empty=*/true);  // missing where that is impossible
  };
  const bool can_be_cut = !is_missing(cut(from, 0, 1)) && !is_missing(cut(to, 0, 1)) &&
                          !is_missing(cut(from, blocks - 1, blocks)) && !is_missing(cut(to, blocks - 1, blocks));
  if (!can_be_cut) return reorder(wrap(from, source), wrap(to, target));
  parallel_for(blocks, 1, [&](std::int64_t begin, std::int64_t end) {
    reorder(wrap(cut(from, begin, end), source), wrap(cut(to, begin, end), target));
  });
}

memory images(const ConvGeometry& g, const float* x) { return wrap(described({g.n, g.c, g.h, g.w}, Tag::nhwc), x); }
memory results(const ConvGeometry& g, const float* y) { return wrap(described({g.n, g.k, g.p, g.q}, Tag::nhwc), y); }

/// Weights as the primitives of all parts want them. Parts of different sizes may differ in that.
class PackedWeights {
 public:
  PackedWeights(const ConvGeometry& g, const std::vector<Plan>& plans, const float* w) {
    for (const Plan& plan : plans) {
      if (packed_.empty() || plan.weights != memories_.back().get_desc()) {
        packed_.emplace_back(floats(plan.weights));
        reorder_weights(g, our_weights(g), w, plan.weights, packed_.back().data());
      }
      memories_.push_back(wrap(plan.weights, packed_.back().data()));
    }
  }
  const memory& of(const Part& part) const { return memories_[static_cast<std::size_t>(part.number)]; }

 private:
  std::vector<Scratch> packed_;
  std::vector<memory> memories_;
};

/// Each part of a weight gradient has sums of its own, as large as the weights: at most so many floats in all.
constexpr std::int64_t kMostSums = std::int64_t{1} << 26;

/// Adds further rows of `count` numbers to the first one.
void add_parts(float* rows, std::int64_t count, std::int64_t parts) {
  if (parts == 1) return;
  parallel_for(count, std::int64_t{1} << 14, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t part = 1; part < parts; ++part)
      for (std::int64_t i = begin; i < end; ++i) rows[i] += rows[part * count + i];
  });
}

}  // namespace

bool pays(const ConvGeometry& g) {
  return (g.groups > 1 || g.c >= 8) && (tandem::detail::in_parallel() || g.n >= num_threads());
}

bool supports(const ConvGeometry& g) {
  // The library's own limit is that what hangs over the last row is not negative padding of more than the image.
  return g.input_numel() > 0 && g.output_numel() > 0;
}

void forward(const ConvGeometry& g, const float* x, const float* w, const ConvEpilogue& epilogue, float* y) {
  const Pass pass = epilogue.relu ? Pass::forward_relu : Pass::forward;
  const std::vector<Part> parts = parts_of(g, Rows::of_output);
  const Scratch zeros(epilogue.bias == nullptr ? g.k : 1);
  if (epilogue.bias == nullptr) std::fill_n(zeros.data(), g.k, 0.0f);
  guarded("the forward pass", g, [&] {
    const std::vector<Plan> plans = plans_for(parts, pass);
    const PackedWeights weights(g, plans, w);
    const memory bias = wrap(described({g.k}, Tag::a), epilogue.bias ? epilogue.bias : zeros.data());
    for_each_part(parts, [&](const Part& part) {
      execute(plans[static_cast<std::size_t>(part.number)], {{DNNL_ARG_SRC, images(part.g, x + part.first_input)},
                                                             {DNNL_ARG_WEIGHTS, weights.of(part)},
                                                             {DNNL_ARG_BIAS, bias},
                                                             {DNNL_ARG_DST, results(part.g, y + part.first_output)}});
    });
  });
  if (epilogue.mask != nullptr) write_sign_mask(y, g.output_numel(), epilogue.mask);
}

void backward_input(const ConvGeometry& g, MaskedGradient<float> grad_y, const float* w, float* grad_x) {
  const DenseGradient<float> dense(grad_y, g, false);
  const std::vector<Part> parts = parts_of(g, Rows::of_input);
  guarded("the input gradient", g, [&] {
    const std::vector<Plan> plans = plans_for(parts, Pass::backward_input);
    const PackedWeights weights(g, plans, w);
    for_each_part(parts, [&](const Part& part) {
      execute(plans[static_cast<std::size_t>(part.number)],
              {{DNNL_ARG_DIFF_DST, results(part.g, dense.gradient.data + part.first_output)},
               {DNNL_ARG_WEIGHTS, weights.of(part)},
               {DNNL_ARG_DIFF_SRC, images(part.g, grad_x + part.first_input)}});
    });
  });
}

void backward_weight(const ConvGeometry& g, const float* x, MaskedGradient<float> grad_y, float* grad_w,
                     float* grad_bias) {
  const DenseGradient<float> dense(grad_y, g, false);
  const std::int64_t most_parts = std::max<std::int64_t>(kMostSums / (g.weight_numel() + g.k), 1);
  const std::vector<Part> parts = parts_of(g, Rows::of_output, most_parts);
  const std::int64_t count = std::ssize(parts);
  guarded("the weight gradient", g, [&] {
    const std::vector<Plan> plans = plans_for(parts, Pass::backward_weight);
    const memory::desc& layout = plans.front().weights;
    const std::int64_t sums = floats(layout);
    const Scratch weight_sums(count * sums), bias_sums(count * g.k);
    for_each_part(parts, [&](const Part& part) {
      const Plan& plan = plans[static_cast<std::size_t>(part.number)];
      float* const own = weight_sums.data() + part.number * sums;
      const bool differs = plan.weights != layout;
      const Scratch other(differs ? floats(plan.weights) : 1);
      const memory weights = wrap(plan.weights, differs ? other.data() : own);
      execute(plan, {{DNNL_ARG_SRC, images(part.g, x + part.first_input)},
                     {DNNL_ARG_DIFF_DST, results(part.g, dense.gradient.data + part.first_output)},
                     {DNNL_ARG_DIFF_WEIGHTS, weights},
                     {DNNL_ARG_DIFF_BIAS, wrap(described({g.k}, Tag::a), bias_sums.data() + part.number * g.k)}});
      if (differs) reorder(weights, wrap(layout, own));
    });
    add_parts(weight_sums.data(), sums, count);
    add_parts(bias_sums.data(), g.k, count);
    reorder_weights(g, layout, weight_sums.data(), our_weights(g), grad_w);
    if (grad_bias != nullptr) std::copy_n(bias_sums.data(), g.k, grad_bias);
  });
}

}  // namespace tandem::kernels::onednn

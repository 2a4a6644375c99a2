// The table of contestants.
#include "apps/conv_bench/contestants.h"

#include "tandem/autograd/functions/conv_bias_relu.h"
#include "tandem/autograd/variable.h"
#include "tandem/core/device_query.h"
#include "tandem/core/error.h"
#include "tandem/core/has_cuda.h"
#include "tandem/core/suggest.h"
#include "tandem/kernels/activation/relu.h"
#include "tandem/kernels/conv/cudnn/library_passes.h"
#include "tandem/kernels/elementwise/add.h"
#include "tandem/kernels/float32_products.h"
#include "tandem/kernels/implementations.h"

#include <fmt/ranges.h>

namespace tandem::conv_bench {

namespace {

using kernels::Conv2dOptions;
using kernels::ConvImpl;

Conv2dOptions options_for(const Workload& workload, ConvImpl impl) {
  Conv2dOptions options = workload.layer.options();
  options.impl = impl;
  return options;
}

std::string obstacle_for_gpu_code(Device device) {
  if (device.type == DeviceType::cuda) return "";
  return kHasCuda ? "needs a GPU: give --device cuda" : "needs a GPU, and this build has no CUDA (TANDEM_CUDA=OFF)";
}

std::string obstacle_of(ConvImpl impl, Device device) {
  const bool on_cpu = device.type == DeviceType::cpu;
  if (impl == ConvImpl::onednn) {
    if (!on_cpu) return "oneDNN runs on the CPU only";
    return std::string(kernels::missing_onednn());
  }
  const bool for_gpus = impl == ConvImpl::cudnn || impl == ConvImpl::warpgroup;
  if (for_gpus && on_cpu) return obstacle_for_gpu_code(device);
  if (impl == ConvImpl::cudnn)
    return cuda_is_simulated() ? "cuDNN does not run on simulated GPUs" : kernels::find_cudnn().problem;
  return kernels::obstacle(impl, device);
}

/// The fused entry points, forced to one implementation.
Contestant fused(std::string name, std::string description, ConvImpl impl, bool is_library) {
  return {.name = std::move(name),
          .description = std::move(description),
          .is_library = is_library,
          .impl = impl,
          .obstacle = [impl](Device device) { return obstacle_of(impl, device); },
          .forward =
              [impl](Workload& o) {
                kernels::conv_bias_relu_forward(o.x, o.w, o.bias, options_for(o, impl), Out(o.y), Out(o.mask));
              },
          .backward =
              [impl](Workload& o) {
                kernels::conv_bias_relu_backward(options_for(o, impl),
                                                 {.x = o.x, .w = o.w, .mask = o.mask, .grad_y = o.grad_y},
                                                 {.x = Out(o.grad_x), .w = Out(o.grad_w), .bias = Out(o.grad_bias)});
              }};
}

/// Our own kernels for f32 on tensor cores.
Contestant on_tensor_cores(std::string name, std::string description, kernels::Float32Products products,
                           double product_error) {
  Contestant made = fused(std::move(name), std::move(description), ConvImpl::fused, false);
  made.product_error = product_error;
  made.obstacle = obstacle_for_gpu_code;
  const auto rounding = [products](const std::function<void(Workload&)>& pass) {
    return [products, pass](Workload& o) {
      require(o.dtype() == DType::f32, "only f32 is rounded for tensor cores, not {}", name_of(o.dtype()));
      const kernels::Float32ProductsScope scope(products);
      pass(o);
    };
  };
  made.forward = rounding(made.forward);
  made.backward = rounding(made.backward);
  return made;
}

/// Each step a pass of its own; bias is the convolution's where the library has it for nothing.
Contestant unfused(std::string name, std::string description, ConvImpl impl, bool conv_adds_bias) {
  return {.name = std::move(name),
          .description = std::move(description),
          .is_library = true,
          .writes_mask = false,
          .obstacle = [impl](Device device) { return obstacle_of(impl, device); },
          .forward =
              [impl, conv_adds_bias](Workload& o) {
                kernels::conv2d_forward(o.x, o.w, conv_adds_bias ? o.bias : Tensor(), options_for(o, impl), Out(o.y));
                if (!conv_adds_bias) kernels::add(o.y, o.bias.view({1, o.layer.k, 1, 1}).expand(o.y.shape()), Out(o.y));
                kernels::relu_forward(o.y, Out(o.y));
              },
          .backward =
              [impl](Workload& o) {
                const Conv2dOptions options = options_for(o, impl);
                kernels::relu_backward(o.y, o.grad_y, Out(o.grad_z));
                if (o.grad_bias.defined()) kernels::conv2d_backward_bias(o.grad_z, Out(o.grad_bias));
                if (o.grad_x.defined()) kernels::conv2d_backward_input(o.grad_z, o.w, options, Out(o.grad_x));
                if (o.grad_w.defined()) kernels::conv2d_backward_weight(o.x, o.grad_z, options, Out(o.grad_w));
              }};
}

/// cuDNN's passes as NVIDIA's apex puts them together (contrib/csrc/conv_bias_relu, commit 6424da3b): y is kept, and
/// the backward pass is three graphs: through the ReLU with the sums of the bias, the gradient of w, the gradient of x.
Contestant apex_like() {
  Contestant made = fused("apex-like", "cuDNN as apex: one graph forward, three backward", ConvImpl::cudnn, true);
  made.writes_mask = false;
  made.forward = [](Workload& o) {
    kernels::conv_bias_relu_forward(o.x, o.w, o.bias, options_for(o, ConvImpl::cudnn), Out(o.y), {});
  };
  made.backward = [](Workload& o) {
    if (!o.grad_bias.defined()) kernels::relu_backward(o.y, o.grad_y, Out(o.grad_z));
    if constexpr (kHasCuda)
      if (o.grad_bias.defined())
        kernels::cuda::library_backward_relu_bias(*kernels::find_cudnn().library, o.geometry(), o.grad_y, o.y,
                                                  Out(o.grad_z), Out(o.grad_bias));
    const Conv2dOptions options = options_for(o, ConvImpl::cudnn);
    if (o.grad_w.defined()) kernels::conv2d_backward_weight(o.x, o.grad_z, options, Out(o.grad_w));
    if (o.grad_x.defined()) kernels::conv2d_backward_input(o.grad_z, o.w, options, Out(o.grad_x));
  };
  return made;
}

/// Ours as a model runs it: recorded on the tape, with results in new memory.
Contestant taped() {
  return {.name = "autograd",
          .description = "ours on the tape, results in new memory, as in a model",
          .reads_mask = false,
          .impl = ConvImpl::automatic,
          .can_be_recorded = false,
          .obstacle = [](Device) { return std::string(); },
          .forward =
              [](Workload& o) {
                const Tensor x = o.x.detach(), w = o.w.detach(), bias = o.bias.detach();
                autograd::set_requires_grad(x, !o.layer.is_first);
                o.w = autograd::set_requires_grad(w);
                o.bias = autograd::set_requires_grad(bias);
                o.x = x;
                o.y = Tensor();
                o.y = autograd::conv_bias_relu(o.x, o.w, o.bias, o.layer.options());
              },
          .backward =
              [](Workload& o) {
                autograd::backward(o.y, o.grad_y);
                o.grad_x = o.layer.is_first ? Tensor() : autograd::grad(o.x);
                o.grad_w = autograd::grad(o.w);
                o.grad_bias = autograd::grad(o.bias);
              }};
}

}  // namespace

const std::vector<Contestant>& contestants() {
  static const std::vector<Contestant> all = [] {
    std::vector<Contestant> list{
        fused("ours", "what --conv-impl auto takes", ConvImpl::automatic, false),
        fused("fused", "our own kernels only", ConvImpl::fused, false),
        fused("direct", "our own kernels without Winograd's algorithm", ConvImpl::direct, false),
        fused("winograd", "our own kernels, Winograd's algorithm wherever it is possible", ConvImpl::winograd, false),
        fused("warpgroup", "our own kernels, those for Hopper (TMA, wgmma) where they run", ConvImpl::warpgroup, false),
        on_tensor_cores("tf32", "our own kernels, f32 rounded to TF32", kernels::Float32Products::tf32, 0x1p-10),
        on_tensor_cores("3xtf32", "our own kernels, f32 as the sum of two TF32", kernels::Float32Products::tf32x3,
                        0x1p-21),
        taped(),
        fused("reference", "plain loops", ConvImpl::reference, false),
        fused("onednn", "oneDNN with bias and ReLU fused forward; masking apart", ConvImpl::onednn, true),
        unfused("onednn-unfused", "oneDNN, ReLU and bias gradient apart", ConvImpl::onednn, true),
        fused("cudnn", "cuDNN with bias and ReLU fused forward; masking apart", ConvImpl::cudnn, true),
        apex_like(),
        unfused("cudnn-unfused", "cuDNN; bias, ReLU and their gradients apart", ConvImpl::cudnn, false),
    };
    for (Contestant& step : ladder_contestants()) list.push_back(std::move(step));
    for (Contestant& family : family_contestants()) list.push_back(std::move(family));
    return list;
  }();
  return all;
}

std::vector<std::string_view> contestant_names(Device device) {
  std::vector<std::string_view> names;
  for (const Contestant& contestant : contestants())
    if (contestant.obstacle(device).empty()) names.push_back(contestant.name);
  return names;
}

const Contestant& find_contestant(std::string_view name, Device device) {
  for (const Contestant& contestant : contestants())
    if (contestant.name == name) return contestant;
  const std::vector<std::string_view> names = contestant_names(device);
  const std::string nearest = name == name_of(ConvImpl::automatic) ? "ours" : nearest_name(name, names);
  fail("--impl '{}': unknown implementation{}; on {} there are {}", name,
       nearest.empty() ? nearest : fmt::format(", did you mean '{}'?", nearest), name_of(device),
       fmt::join(names, ", "));
}

std::vector<Contestant> usual_contestants(Device device) {
  std::vector<Contestant> usual;
  for (const std::string_view name :
       {"ours", "fused", "onednn", "onednn-unfused", "cudnn", "apex-like", "cudnn-unfused"}) {
    const Contestant& contestant = find_contestant(name);
    if (contestant.obstacle(device).empty()) usual.push_back(contestant);
  }
  return usual;
}

}  // namespace tandem::conv_bench

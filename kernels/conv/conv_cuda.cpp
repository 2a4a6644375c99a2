// Convolution on a GPU: which family of kernels, or cuDNN, runs a geometry.
#include "core/device_query.h"
#include "kernels/conv/cudnn/library_passes.h"
#include "kernels/conv/implementations.h"
#include "kernels/gemm/column_sum.h"

namespace tandem::kernels::cuda {
namespace {

/// One family's three passes.
struct Passes {
  decltype(&naive::forward) forward;
  decltype(&naive::backward_input) backward_input;
  decltype(&naive::backward_weight) backward_weight;
};

/// The family for the tensors of one pass.
Family choose(const ConvGeometry& g, ConvImpl impl, DType dtype, std::initializer_list<Tensor> tensors) {
  require(impl != ConvImpl::onednn, "conv2d: oneDNN runs on the CPU, the tensors are on a GPU; use --conv-impl auto");
  return choose_family(g, impl, dtype, tensors).family;
}

const Passes& select(const ConvGeometry& g, ConvImpl impl, DType dtype, std::initializer_list<Tensor> tensors) {
  static constexpr Passes kPasses[] = {
      {naive::forward, naive::backward_input, naive::backward_weight},
      {tile::forward, tile::backward_input, tile::backward_weight},
      {implicit_gemm::forward, implicit_gemm::backward_input, implicit_gemm::backward_weight},
  };
  return kPasses[static_cast<std::size_t>(choose(g, impl, dtype, tensors))];
}

/// cuDNN for a pass; null for our kernels, which take empty tensors, too.
ConvLibrary* select_library(const ConvGeometry& g, ConvImpl impl, ConvPass pass, const ConvTensors& tensors) {
  const bool automatic = impl == ConvImpl::automatic;
  const std::int64_t work = g.output_numel() * g.group_c() * g.r * g.s;
  if (!(automatic || impl == ConvImpl::cudnn) || work == 0 || g.input_numel() == 0 || cuda_is_simulated())
    return nullptr;
  if (automatic && work < kLeastLibraryWork) return nullptr;
  ConvLibrary* const library = find_cudnn().library.get();
  const ConvTask task{g, tensors.y.dtype(), pass};
  if (library == nullptr || library_takes(*library, task, tensors)) return library;
  require(automatic,
          "conv2d: cuDNN has no deterministic code for {} of {} x [{}, {}, {}, {}], w [{}, {}, {}, {}], {} groups, at "
          "these addresses; use --conv-impl auto",
          name_of(pass), name_of(task.dtype), g.n, g.c, g.h, g.w, g.k, g.group_c(), g.r, g.s, g.groups);
  return nullptr;
}

/// What a layer below wants done, where the kernels that wrote grad_x did not.
void finish_for_layer_below(const Tensor& grad_x, const LayerBelow& below) {
  if (below.mask.defined()) apply_mask(grad_x, below.mask, grad_x);
  if (below.grad_bias.defined()) conv_backward_bias(grad_x, {}, below.grad_bias);
}

}  // namespace

FamilyChoice choose_family(const ConvGeometry& g, ConvImpl impl, DType dtype, std::initializer_list<Tensor> tensors) {
  if (impl == ConvImpl::reference) return {Family::naive, "it was asked for"};
  const std::string_view reason = implicit_gemm::obstacle(g, dtype, tensors);
  if (reason.empty()) return {Family::implicit_gemm, ""};
  return {tile::supports(g) ? Family::tile : Family::naive, reason};
}

void conv_forward(const ConvGeometry& g, ConvImpl impl, const Tensor& x, const Tensor& w, const Epilogue& epilogue,
                  const Tensor& y) {
  if (ConvLibrary* const library = select_library(g, impl, ConvPass::forward, {x, w, y}))
    return library_forward(*library, g, x, w, epilogue, y);
  select(g, impl, y.dtype(), {x, w, epilogue.bias, y}).forward(g, x, w, epilogue, y);
}

void conv_backward(const ConvGeometry& g, ConvImpl impl, const Tensor& x, const Tensor& w, const Tensor& mask,
                   const Tensor& grad_y, const Tensor& grad_x, const Tensor& grad_w, const Tensor& grad_bias,
                   const LayerBelow& below) {
  const auto library_for = [&](ConvPass pass, const Tensor& result, const Tensor& image, const Tensor& weight) {
    return result.defined() ? select_library(g, impl, pass, {image, weight, grad_y}) : nullptr;
  };
  const auto takes_no_mask = [&](ConvLibrary* library, const Tensor& result, const Tensor& other) {
    if (!result.defined()) return false;
    return library != nullptr || choose(g, impl, result.dtype(), {grad_y, other, result}) == Family::implicit_gemm;
  };
  const bool has_below = below.mask.defined() || below.grad_bias.defined();
  ConvLibrary* const for_input = library_for(ConvPass::backward_input, grad_x, grad_x, w);
  ConvLibrary* const for_weight = library_for(ConvPass::backward_weight, grad_w, x, grad_w);
  // Where one pass needs a copy of the gradient without a mask, all take it: it is read faster.
  const bool copies = takes_no_mask(for_input, grad_x, w) || takes_no_mask(for_weight, grad_w, x);
  const Tensor gradient = copies ? masked_gradient(grad_y, mask) : grad_y, open = copies ? Tensor() : mask;
  if (for_input != nullptr) {
    for_input->run({g, grad_y.dtype(), ConvPass::backward_input}, {grad_x, w, gradient});
    if (has_below) finish_for_layer_below(grad_x, below);
  } else if (grad_x.defined() && has_below &&
             choose(g, impl, grad_x.dtype(), {gradient, w, grad_x}) == Family::implicit_gemm) {
    implicit_gemm::backward_input_by({}, g, gradient, open, w, below, grad_x);
  } else if (grad_x.defined()) {
    select(g, impl, grad_x.dtype(), {gradient, w, grad_x}).backward_input(g, gradient, open, w, grad_x);
    if (has_below) finish_for_layer_below(grad_x, below);
  }
  if (for_weight != nullptr) {
    for_weight->run({g, grad_y.dtype(), ConvPass::backward_weight}, {x, grad_w, gradient});
  } else if (grad_w.defined()) {
    select(g, impl, grad_w.dtype(), {gradient, x, grad_w}).backward_weight(g, x, gradient, open, grad_w);
  }
  if (grad_bias.defined()) conv_backward_bias(gradient, open, grad_bias);
}

bool fuses_layer_below(const ConvGeometry& g, ConvImpl impl, const Tensor& x, const Tensor& w) {
  return select_library(g, impl, ConvPass::backward_input, {x, w, x}) == nullptr &&
         choose(g, impl, x.dtype(), {x, w}) == Family::implicit_gemm;
}

void conv_backward_bias(const Tensor& grad_y, const Tensor& mask, const Tensor& grad_bias) {
  column_sum(grad_y.size(0) * grad_y.size(2) * grad_y.size(3), grad_y.size(1), grad_y, mask, grad_bias);
}

}  // namespace tandem::kernels::cuda

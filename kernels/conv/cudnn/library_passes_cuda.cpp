// Around the library: bias, ReLU, sign masks.
#include "tandem/kernels/conv/cudnn/library_passes.h"

#include "tandem/core/memory.h"
#include "tandem/kernels/activation/relu_implementations.h"
#include "tandem/kernels/elementwise/add_implementations.h"
#include "tandem/kernels/gemm/column_sum.h"

#include <algorithm>

namespace tandem::kernels::cuda {
namespace {

ConvPass fused_pass(const Epilogue& epilogue) {
  if (epilogue.bias.defined()) return epilogue.relu ? ConvPass::forward_bias_relu : ConvPass::forward_bias;
  return epilogue.relu ? ConvPass::forward_relu : ConvPass::forward;
}

}  // namespace

bool library_takes(ConvLibrary& library, const ConvTask& task, const ConvTensors& tensors) {
  const Tensor* const all[] = {&tensors.x, &tensors.w, &tensors.y, &tensors.bias, &tensors.gate, &tensors.sums};
  const bool aligned = std::all_of(std::begin(all), std::end(all), [](const Tensor* one) { return is_aligned(*one); });
  return aligned && library.supports(task, tensors.y.device());
}

ConvTask library_forward_task(ConvLibrary& library, const ConvGeometry& g, const Tensor& x, const Tensor& w,
                              const Epilogue& epilogue, const Out& y) {
  const ConvTask fused{g, y.dtype(), fused_pass(epilogue)};
  if (library_takes(library, fused, {x, w, y, epilogue.bias})) return fused;
  return {g, y.dtype(), ConvPass::forward};
}

void library_forward(ConvLibrary& library, const ConvGeometry& g, const Tensor& x, const Tensor& w,
                     const Epilogue& epilogue, const Out& y, int plan) {
  const ConvTask task = library_forward_task(library, g, x, w, epilogue, y);
  const bool fused = task.pass == fused_pass(epilogue);
  library.run(task, {x, w, y, fused ? epilogue.bias : Tensor()}, plan);
  if (!fused && epilogue.bias.defined()) add(y, epilogue.bias.view({1, g.k, 1, 1}).expand(y.shape()), y);
  if (!fused && epilogue.relu) relu_forward(y, y);
  if (epilogue.mask.defined()) sign_mask(y, epilogue.mask);
}

ConvTask library_backward_input_task(ConvLibrary& library, const ConvGeometry& g, const Tensor& grad_y, const Tensor& w,
                                     const Tensor& x, const LayerBelow& below, const Out& grad_x) {
  const auto task = [&](ConvPass pass) { return ConvTask{g, grad_y.dtype(), pass}; };
  if (!below.mask.defined() || !x.defined()) return task(ConvPass::backward_input);
  for (const ConvPass pass : {ConvPass::backward_input_relu_bias, ConvPass::backward_input_relu}) {
    if (pass == ConvPass::backward_input_relu_bias && !below.grad_bias.defined()) continue;
    if (library_takes(library, task(pass), {grad_x, w, grad_y, {}, x})) return task(pass);
  }
  return task(ConvPass::backward_input);
}

void library_backward_input(ConvLibrary& library, const ConvGeometry& g, const Tensor& grad_y, const Tensor& w,
                            const Tensor& x, const LayerBelow& below, const Out& grad_x, int plan) {
  const ConvTask task = library_backward_input_task(library, g, grad_y, w, x, below, grad_x);
  ConvTensors tensors{grad_x, w, grad_y};
  if (task.pass != ConvPass::backward_input) tensors.gate = x;
  if (task.pass != ConvPass::backward_input_relu_bias) {
    library.run(task, tensors, plan);
    return finish_for_layer_below(grad_x, tensors.gate.defined() ? LayerBelow{{}, below.grad_bias} : below);
  }
  const MemoryTagScope scope(MemoryTag::workspace);
  tensors.sums = Tensor::empty({1, g.c}, {.device = grad_x.device()});
  library.run(task, tensors, plan);
  column_sum_of_parts(tensors.sums, below.grad_bias);
}

bool library_fuses_layer_below(ConvLibrary& library, const ConvGeometry& g, const Tensor& x, const Tensor& w) {
  return library_takes(library, {g, x.dtype(), ConvPass::backward_input_relu}, {x, w, x, {}, x});
}

void library_backward_relu_bias(ConvLibrary& library, const ConvGeometry& g, const Tensor& grad_y, const Tensor& y,
                                const Out& open, const Out& grad_bias) {
  const MemoryTagScope scope(MemoryTag::workspace);
  const Tensor sums = Tensor::empty({1, g.k}, {.device = y.device()});
  const ConvTask task{g, y.dtype(), ConvPass::backward_relu_bias};
  const ConvTensors tensors{open, {}, grad_y, {}, y, sums};
  require(library_takes(library, task, tensors), "the library has no code for {}", name_of(task.pass));
  library.run(task, tensors);
  column_sum_of_parts(sums, grad_bias);
}

}  // namespace tandem::kernels::cuda

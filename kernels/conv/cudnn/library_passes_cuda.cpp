// Around the library: bias, ReLU, sign masks.
#include "kernels/conv/cudnn/library_passes.h"

#include "core/memory.h"
#include "kernels/activation/relu.h"
#include "kernels/elementwise/add.h"

namespace tandem::kernels::cuda {
namespace {

bool is_aligned(const Tensor& tensor) {
  return !tensor.defined() || reinterpret_cast<std::uintptr_t>(tensor.raw_data()) % kLibraryAlignment == 0;
}

ConvPass fused_pass(const Epilogue& epilogue) {
  if (epilogue.bias.defined()) return epilogue.relu ? ConvPass::forward_bias_relu : ConvPass::forward_bias;
  return epilogue.relu ? ConvPass::forward_relu : ConvPass::forward;
}

}  // namespace

bool library_takes(ConvLibrary& library, const ConvTask& task, const ConvTensors& tensors) {
  const bool aligned =
      is_aligned(tensors.x) && is_aligned(tensors.w) && is_aligned(tensors.y) && is_aligned(tensors.bias);
  return aligned && library.supports(task, tensors.y.device());
}

void library_forward(ConvLibrary& library, const ConvGeometry& g, const Tensor& x, const Tensor& w,
                     const Epilogue& epilogue, const Tensor& y) {
  const ConvTask fused{g, y.dtype(), fused_pass(epilogue)};
  const ConvTensors tensors{x, w, y, epilogue.bias};
  if (library_takes(library, fused, tensors)) {
    library.run(fused, tensors);
  } else {
    library.run({g, y.dtype(), ConvPass::forward}, {x, w, y});
    if (epilogue.bias.defined()) add(y, epilogue.bias.view({1, g.k, 1, 1}).expand(y.shape()), y);
    if (epilogue.relu) relu_forward(y, y);
  }
  if (epilogue.mask.defined()) sign_mask(y, epilogue.mask);
}

Tensor masked_gradient(const Tensor& grad_y, const Tensor& mask) {
  if (!mask.defined()) return grad_y;
  const MemoryTagScope scope(MemoryTag::workspace);
  const Tensor masked = empty_like(grad_y);
  apply_mask(grad_y, mask, masked);
  return masked;
}

}  // namespace tandem::kernels::cuda

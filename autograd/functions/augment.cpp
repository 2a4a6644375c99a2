// Differentiable padding, cropping and mirroring of images.
#include "tandem/autograd/functions/augment.h"

#include "tandem/autograd/record.h"
#include "tandem/kernels/augment/crop2d.h"
#include "tandem/kernels/augment/flip_horizontal.h"

namespace tandem::autograd {

namespace {

constexpr Layout kLayout = Layout::channels_last;

Tensor flipped(const Tensor& x) {
  const Tensor y = Tensor::empty(x.shape(), x.options(kLayout));
  kernels::flip_horizontal(x.contiguous(kLayout), Out(y));
  return y;
}

}  // namespace

Tensor pad2d(const Tensor& x, const Pad2dOptions& options) {
  const Tensor y = Tensor::empty(kernels::pad2d_output_shape(x.shape(), options), x.options(kLayout));
  unrecorded([&] { kernels::pad2d(x.contiguous(kLayout), options, Out(y)); });
  return record("pad2d", {x}, y, [options, shape = x.shape()](const BackwardContext& context) {
    const Tensor grad_y = context.grad_output().contiguous(kLayout);
    const Tensor grad_x = Tensor::empty(shape, grad_y.options(kLayout));
    kernels::pad2d_backward(grad_y, options, Out(grad_x));
    return std::vector<Tensor>{grad_x};
  });
}

Tensor crop2d(const Tensor& x, std::int64_t top, std::int64_t left, std::int64_t height, std::int64_t width) {
  require(x.rank() == 4, "crop2d: needs images of shape N,C,H,W, got {}", describe(x));
  require(height >= 0 && width >= 0, "crop2d: a window of {} x {} is negative", height, width);
  const Tensor y = Tensor::empty({x.size(0), x.size(1), height, width}, x.options(kLayout));
  unrecorded([&] { kernels::crop2d(x, top, left, Out(y)); });
  return record("crop2d", {x}, y, [top, left, shape = x.shape()](const BackwardContext& context) {
    const Tensor grad_x = Tensor::empty(shape, context.grad_output().options(kLayout));
    kernels::crop2d_backward(context.grad_output(), top, left, Out(grad_x));
    return std::vector<Tensor>{grad_x};
  });
}

Tensor flip_horizontal(const Tensor& x) {
  require(x.rank() == 4, "flip_horizontal: needs images of shape N,C,H,W, got {}", describe(x));
  const Tensor y = unrecorded([&] { return flipped(x); });
  return record("flip_horizontal", {x}, y,
                [](const BackwardContext& context) { return std::vector<Tensor>{flipped(context.grad_output())}; });
}

}  // namespace tandem::autograd

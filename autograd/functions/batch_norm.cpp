// Differentiable batch normalisation.
#include "tandem/autograd/functions/batch_norm.h"

#include "tandem/autograd/record.h"
#include "tandem/core/describe.h"
#include "tandem/core/out.h"

namespace tandem::autograd {

Tensor batch_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& running_mean,
                  const Tensor& running_var, const BatchNormOptions& options, const Tensor& moments) {
  constexpr Layout kLayout = Layout::channels_last;
  require(x.rank() == 4 || x.rank() == 2, "batch_norm: needs images [N, C, H, W] or rows [N, C], got {}", x);
  const Tensor rows = unrecorded([&] { return x.contiguous(kLayout); });
  const Tensor y = Tensor::empty(x.shape(), x.options(kLayout));
  const TensorOptions statistics{kernels::batch_norm_statistics_dtype(x.dtype()), Layout::row_major, x.device()};
  const Tensor mean = Tensor::empty({x.size(1)}, statistics), inverse_std = Tensor::empty({x.size(1)}, statistics);
  unrecorded([&] {
    if (moments.defined() && options.training) {
      kernels::batch_norm_forward_from_moments(rows, moments, weight, bias, Out(running_mean), Out(running_var),
                                               options, Out(y), Out(mean), Out(inverse_std));
    } else if (options.training) {
      kernels::batch_norm_forward_train(rows, weight, bias, Out(running_mean), Out(running_var), options, Out(y),
                                        Out(mean), Out(inverse_std));
    } else {
      kernels::batch_norm_forward_eval(rows, weight, bias, running_mean, running_var, options, Out(y), Out(mean),
                                       Out(inverse_std));
    }
  });
  if (!should_record({x, weight, bias})) return y;

  return record("batch_norm", {x, weight, bias}, y,
                [options, mean, inverse_std, saved_x = SavedTensor(rows), saved_weight = SavedTensor(weight),
                 saved_bias = SavedTensor(options.activation == Activation::none ? Tensor() : bias)](
                    const BackwardContext& context) {
                  const Tensor grad_y = context.grad_output().contiguous(kLayout);
                  const Tensor from = saved_x.get(), scale = saved_weight.get();
                  const std::vector<Tensor> gradients{context.new_gradient(0, kLayout), context.new_gradient(1),
                                                      context.new_gradient(2)};
                  kernels::batch_norm_backward(from, scale, saved_bias.get(), mean, inverse_std, options, grad_y,
                                               Out(gradients[0]), Out(gradients[1]), Out(gradients[2]));
                  return gradients;
                });
}

}  // namespace tandem::autograd

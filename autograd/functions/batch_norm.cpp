// Differentiable batch normalisation.
#include "autograd/functions/batch_norm.h"

#include "autograd/record.h"
#include "core/describe.h"

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
      kernels::batch_norm_forward_from_moments(rows, moments, weight, bias, running_mean, running_var, options, y, mean,
                                               inverse_std);
    } else {
      const auto forward = options.training ? kernels::batch_norm_forward_train : kernels::batch_norm_forward_eval;
      forward(rows, weight, bias, running_mean, running_var, options, y, mean, inverse_std);
    }
  });
  if (!should_record({x, weight, bias})) return y;

  return record("batch_norm", {x, weight, bias}, y,
                [options, mean, inverse_std, saved_x = SavedTensor(rows), saved_weight = SavedTensor(weight),
                 saved_bias = SavedTensor(options.relu ? bias : Tensor()),
                 bias_options = bias.defined() ? bias.options() : TensorOptions{}](const BackwardContext& context) {
                  const Tensor grad_y = context.grad_output().contiguous(kLayout);
                  const Tensor from = saved_x.get(), scale = saved_weight.get();
                  std::vector<Tensor> gradients(3);
                  if (context.needs(0)) gradients[0] = Tensor::empty(from.shape(), from.options(kLayout));
                  if (context.needs(1)) gradients[1] = Tensor::empty(scale.shape(), scale.options());
                  if (context.needs(2)) gradients[2] = Tensor::empty({from.size(1)}, bias_options);
                  kernels::batch_norm_backward(from, scale, saved_bias.get(), mean, inverse_std, options, grad_y,
                                               gradients[0], gradients[1], gradients[2]);
                  return gradients;
                });
}

}  // namespace tandem::autograd

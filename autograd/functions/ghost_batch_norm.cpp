// Batch norm's kernels over the parts of a batch, and sums over what these leave.
#include "tandem/autograd/functions/ghost_batch_norm.h"

#include "tandem/autograd/functions/arithmetic.h"
#include "tandem/autograd/functions/cast.h"
#include "tandem/autograd/functions/reduce.h"
#include "tandem/autograd/grad_mode.h"
#include "tandem/autograd/record.h"
#include "tandem/core/describe.h"
#include "tandem/core/out.h"

namespace tandem::autograd {

namespace {

/// Views of a batch: `size` images each, one behind another.
class Parts {
 public:
  Parts(std::int64_t images, std::int64_t size) : count_(images / size), size_(size) {}

  std::int64_t count() const { return count_; }
  Tensor of(const Tensor& batch, std::int64_t part) const {
    return batch.defined() ? batch.narrow(0, part * size_, size_) : Tensor();
  }

 private:
  std::int64_t count_, size_;
};

Tensor row_of(const Tensor& rows, std::int64_t part) { return rows.defined() ? rows.select(0, part) : Tensor(); }

/// running = (1 - momentum) * running + momentum * the mean of the rows
void move_towards(const Tensor& running, const Tensor& rows, double momentum) {
  if (!running.defined()) return;
  const Tensor kept = scale(cast(running, rows.dtype()), 1.0 - momentum);
  running.copy_from(cast(add(kept, scale(mean(rows, 0), momentum)), running.dtype()));
}

}  // namespace

Tensor ghost_batch_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& running_mean,
                        const Tensor& running_var, std::int64_t part, const BatchNormOptions& options) {
  constexpr Layout kLayout = Layout::channels_last;
  require(x.rank() == 4 || x.rank() == 2, "ghost_batch_norm: needs images [N, C, H, W] or rows [N, C], got {}", x);
  require(options.training, "ghost_batch_norm: is for training; batch_norm() evaluates by running statistics");
  require(part > 0 && x.size(0) % part == 0,
          "ghost_batch_norm: a batch of {} cannot be cut into parts of {}; choose a batch size that is a multiple of "
          "it, and leave an incomplete last batch out (drop_last)",
          x.size(0), part);
  const Parts parts(x.size(0), part);
  const Tensor rows = unrecorded([&] { return x.contiguous(kLayout); });
  const Tensor y = Tensor::empty(x.shape(), x.options(kLayout));
  const TensorOptions statistics{kernels::batch_norm_statistics_dtype(x.dtype()), Layout::row_major, x.device()};
  const Shape shape{parts.count(), x.size(1)};
  const Tensor means = Tensor::empty(shape, statistics), inverse_stds = Tensor::empty(shape, statistics);
  unrecorded([&] {
    // A running statistic that moves all the way is the batch's own: of the variance, the unbiased one.
    const bool keeps = running_mean.defined() || running_var.defined();
    const Tensor batch_means = keeps ? Tensor::zeros(shape, statistics) : Tensor();
    const Tensor batch_vars = keeps ? Tensor::zeros(shape, statistics) : Tensor();
    BatchNormOptions of_part = options;
    of_part.momentum = 1.0;
    for (std::int64_t i = 0; i < parts.count(); ++i) {
      kernels::batch_norm_forward_train(parts.of(rows, i), weight, bias, Out(row_of(batch_means, i)),
                                        Out(row_of(batch_vars, i)), of_part, Out(parts.of(y, i)), Out(row_of(means, i)),
                                        Out(row_of(inverse_stds, i)));
    }
    if (!keeps || parts.count() == 0) return;
    move_towards(running_mean, batch_means, options.momentum);
    move_towards(running_var, batch_vars, options.momentum);
  });
  if (!should_record({x, weight, bias})) return y;

  return record(
      "ghost_batch_norm", {x, weight, bias}, y,
      [options, parts, means, inverse_stds, saved_x = SavedTensor(rows), saved_weight = SavedTensor(weight),
       saved_bias =
           SavedTensor(options.activation == Activation::none ? Tensor() : bias)](const BackwardContext& context) {
        const Tensor grad_y = context.grad_output().contiguous(kLayout);
        const Tensor from = saved_x.get(), factor = saved_weight.get(), offset = saved_bias.get();
        const Tensor grad_x = context.new_gradient(0, kLayout);
        const auto per_part = [&](std::size_t input) {
          return context.needs(input) ? Tensor::empty(means.shape(), means.options()) : Tensor();
        };
        const Tensor grad_weights = per_part(1), grad_biases = per_part(2);
        for (std::int64_t i = 0; i < parts.count(); ++i) {
          kernels::batch_norm_backward(parts.of(from, i), factor, offset, row_of(means, i), row_of(inverse_stds, i),
                                       options, parts.of(grad_y, i), Out(parts.of(grad_x, i)),
                                       Out(row_of(grad_weights, i)), Out(row_of(grad_biases, i)));
        }
        const auto total = [&](std::size_t input, const Tensor& of_parts) {
          const Tensor gradient = context.new_gradient(input);
          if (gradient.defined()) gradient.copy_from(cast(sum(of_parts, 0), gradient.dtype()));
          return gradient;
        };
        return std::vector<Tensor>{grad_x, total(1, grad_weights), total(2, grad_biases)};
      });
}

}  // namespace tandem::autograd

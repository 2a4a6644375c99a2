// Batch normalisation.
#include "tandem/layers/batch_norm.h"

#include "tandem/autograd/functions/batch_norm.h"
#include "tandem/autograd/functions/ghost_batch_norm.h"
#include "tandem/autograd/variable.h"
#include "tandem/core/out.h"
#include "tandem/core/work_graph.h"

#include <array>

namespace tandem::layers {

BatchNorm2d::BatchNorm2d(const Options& options) : options_(options) {
  const std::int64_t channels = options.channels;
  require(channels > 0, "BatchNorm2d: the number of channels must be positive, got {}", channels);
  require(options.momentum >= 0.0 && options.momentum <= 1.0, "BatchNorm2d: momentum must be from 0 to 1, got {}",
          options.momentum);
  require(options.eps >= 0.0, "BatchNorm2d: eps must not be negative, got {}", options.eps);
  require(options.ghost_batch >= 0,
          "BatchNorm2d: ghost_batch must be a number of images, or 0 for whole batches, got {}", options.ghost_batch);
  weight_ = Initializer::constant({channels}, 1.0);
  bias_ = Initializer::constant({channels}, 0.0);
  running_mean_ = Initializer::buffer({channels}, 0.0);
  running_var_ = Initializer::buffer({channels}, 1.0);
  num_batches_tracked_ = Initializer::buffer({}, 0.0, DType::i64);
  register_parameter("weight", weight_);
  register_parameter("bias", bias_);
  if (!options.train_weight) autograd::set_requires_grad(weight_, false);
  register_buffer("running_mean", running_mean_);
  register_buffer("running_var", running_var_);
  register_buffer("num_batches_tracked", num_batches_tracked_);
}

Tensor BatchNorm2d::forward(const Tensor& input) { return normalise(input, {}); }

Tensor BatchNorm2d::normalise(const Tensor& input, const Tensor& moments) const {
  const autograd::BatchNormOptions options{
      .training = training(), .momentum = options_.momentum, .eps = options_.eps, .activation = options_.activation};
  const bool by_parts = training() && options_.ghost_batch > 0;
  const Tensor output =
      by_parts ? autograd::ghost_batch_norm(input, weight_, bias_, running_mean_, running_var_, options_.ghost_batch,
                                            options)
               : autograd::batch_norm(input, weight_, bias_, running_mean_, running_var_, options, moments);
  if (training()) WorkGraph::with_each_launch([count = num_batches_tracked_] { ++*Out(count).data<std::int64_t>(); });
  return output;
}

std::string BatchNorm2d::describe() const {
  constexpr std::array kNames{"BatchNorm2d", "BatchNormReLU", "BatchNormGELU", "BatchNormSiLU"};
  return fmt::format("{}({}{}{})", kNames[static_cast<std::size_t>(options_.activation)], weight_.size(0),
                     options_.train_weight ? "" : ", fixed weight",
                     options_.ghost_batch > 0 ? fmt::format(", of {} images", options_.ghost_batch) : "");
}

}  // namespace tandem::layers

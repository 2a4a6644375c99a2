// The networks by name.
#pragma once

#include "tandem/kernels/conv/conv.h"
#include "tandem/kernels/gemm/gemm_impl.h"
#include "tandem/layers/module.h"

#include <optional>
#include <span>
#include <string>

namespace tandem::layers {

/// What a network is made for. Fields a network has no use for must keep their defaults.
struct ModelOptions {
  std::string name = "small_cnn";   ///< one of models()
  std::int64_t in_channels = 3;     ///< of the images
  std::int64_t image_size = 32;     ///< height and width
  std::int64_t classes = 10;        ///< how many outputs there are
  std::int64_t layers = 0;          ///< mnist_cnn: convolutions; 0: 4
  bool shared_weights = false;      ///< mnist_cnn: all but the first convolution are one
  bool batch_norm = false;          ///< vgg_lite, mnist_cnn; the others always have it
  double width = 1.0;               ///< airbench94, 95, 96, bag_of_tricks: factor of the channels behind the whitening
  std::string activation = "gelu";  ///< airbench94, 95, 96: behind batch norms, "gelu" or "silu"
  bool unit_head = false;  ///< airbench94, 95, 96: the last weight begins with a standard deviation of 1, and logits
                           ///< are divided by the number of its inputs in place of 9
  bool draw_whitening_bias = false;  ///< airbench94, 95, 96: the first bias begins as Conv2d's does, in place of 0
  bool whitening = true;             ///< airbench94, 95, 96: the first layer is a Whitening2d; false: a Conv2d alike
  bool identity_filters = true;      ///< airbench94, 95, 96: set_identity_filters() of other convolutions
  double celu_alpha = 0.3;           ///< bag_of_tricks: of its CELUs
  std::int64_t ghost_batch = 0;      ///< bag_of_tricks: BatchNorm2dOptions::ghost_batch
  std::optional<double> norm_momentum = {};  ///< those with a whitening: of batch norms; empty: the network's own
  double dropout = 0.0;                      ///< before the last linear layer; vgg_lite: after each hidden one
  double drop_path =
      0.0;  ///< resnet9, resnet18, airbench96: of the last residual branch; of the l-th of L it is l / L of this
  std::uint64_t seed = 0;                                      ///< of the initial weights and of dropout's masks
  kernels::ConvImpl conv_impl = kernels::ConvImpl::automatic;  ///< of all convolutions
  kernels::GemmImpl gemm_impl = kernels::GemmImpl::automatic;  ///< of all linear layers
};

/// Of ModelOptions::width.
inline constexpr double kMostWidth = 16.0;

/// One network, and which of the options it has a use for.
struct ModelEntry {
  std::string_view name;                                         ///< as in ModelOptions
  std::unique_ptr<Module> (*make)(const ModelOptions& options);  ///< makes it, as make_model() does
  std::int64_t smallest_image;                                   ///< height and width
  bool has_layers = false;                                       ///< ModelOptions::layers and shared_weights
  bool has_batch_norm = false;                                   ///< always
  bool takes_batch_norm = false;                                 ///< ModelOptions::batch_norm
  bool has_drop_path = false;                                    ///< ModelOptions::drop_path
  bool has_width = false;                                        ///< ModelOptions::width
  bool is_airbench = false;        ///< ModelOptions::activation, unit_head, whitening and what follows it
  bool has_ghost_batch = false;    ///< ModelOptions::celu_alpha and ghost_batch
  bool has_norm_momentum = false;  ///< ModelOptions::norm_momentum
};

/// All networks, in the order in which programs list them.
std::span<const ModelEntry> models();

/// Names of the networks, or of those that have a use for an option: model_names(&ModelEntry::has_drop_path).
std::vector<std::string> model_names(bool ModelEntry::* with = nullptr);

/// A network [N, in_channels, image_size, image_size] -> logits [N, classes], with PyTorch's default initialisation (or
/// what networks.h says of it; initialize_from() of layers/whitening.h goes on with that of airbench94, 95, 96 and
/// bag_of_tricks), in training mode, its random state at step 0 of options.seed (the trainer sets its own). Equal
/// options give equal weights. Throws Error for an unknown name (suggesting the nearest) and for options that do not
/// fit the network. Example:
///     const auto network = make_model({.name = "resnet9", .classes = 100});
///     const Tensor logits = (*network)(Tensor::zeros({2, 3, 32, 32}, {.layout = Layout::channels_last}));  // [2, 100]
std::unique_ptr<Module> make_model(const ModelOptions& options);

}  // namespace tandem::layers

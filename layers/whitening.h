// A first layer whose filters are made of the images: it gives the patches of an image uncorrelated, at one scale.
#pragma once

#include "tandem/core/height_width.h"
#include "tandem/kernels/conv/conv.h"
#include "tandem/layers/initializer.h"
#include "tandem/layers/module.h"

#include <vector>

namespace tandem::layers {

/// The uncentred second moments of all patches of the images, P^T P / n: d x d numbers, row by row, with d = C R S the
/// numbers of a patch in C,R,S order, and P the n patches, one at each place where the kernel [R, S] lies in an image.
/// images: [N,C,H,W], floating, any layout and device. They are read as f32 and added up in f64, in one order whatever
/// the number of threads. Throws Error for other images, where there are none or they are smaller than the kernel, and
/// for patches of more than 1024 numbers.
std::vector<double> patch_second_moments(const Tensor& images, const HeightWidth& kernel);

/// Filters whose outputs for the patches of these images are uncorrelated, of a mean square of lambda / (lambda + eps):
/// v_i / sqrt(lambda_i + eps) for each eigenvector v_i and eigenvalue lambda_i of patch_second_moments(), the largest
/// first (symmetric_eigen() has the signs), then their negatives, which a ReLU or GELU behind them needs. f32
/// [2 C R S, C, R, S], on the CPU. eps keeps directions small that the images hardly have. Throws Error as
/// patch_second_moments(), for images that hold NaN or infinities, and unless eps is a finite number above 0.
/// Page: "How to train your ResNet 8", 2019; Jordan: arXiv 2404.00498, section 3.1.
/// Example:
///     const Tensor images = Tensor::full({10, 3, 32, 32}, 0.5);
///     const Tensor filters = whitening_filters(images, 2);  // [24, 3, 2, 2]
Tensor whitening_filters(const Tensor& images, const HeightWidth& kernel, double eps = 5e-4);

/// For 2x2 patches of RGB images by default.
struct Whitening2dOptions {
  std::int64_t in = 3;         ///< channels of the images; in * height * width of the kernel is at most 1024
  HeightWidth kernel = 2;      ///< height and width
  double eps = 5e-4;           ///< added to each eigenvalue: whitening_filters()
  std::int64_t padding = 0;    ///< zeros around the images
  bool with_negatives = true;  ///< the negatives of the filters behind them, which an activation behind needs
  bool with_bias = true;
  bool draw_bias = false;                                 ///< the bias begins as Conv2d's does, not as 0
  kernels::ConvImpl impl = kernels::ConvImpl::automatic;  ///< which code computes it
};

/// A convolution from [N,C,H,W] to 2 C R S channels, or C R S without negatives; without padding, to
/// [N, 2 C R S, H - R + 1, W - S + 1]. Its weight is a frozen parameter (Module::requires_grad()), the bias, 0 at
/// first, is trained. State dicts are those of torch.nn.Conv2d. Until initialize() the weight is drawn, as Conv2d's is.
/// Example:
///     Initializer initializer(1);
///     Whitening2d whiten({.in = 3, .kernel = 2}, initializer);
///     const Tensor images = Tensor::full({10, 3, 32, 32}, 0.5, {.layout = Layout::channels_last});
///     whiten.initialize(images);
///     const Tensor y = whiten(images);  // [10, 24, 31, 31]
class Whitening2d final : public Module {
 public:
  /// What the constructor takes.
  using Options = Whitening2dOptions;

  /// Throws Error unless the sizes are positive and fit, eps is a finite number above 0, the padding is not negative,
  /// and a bias that is drawn is there.
  Whitening2d(const Options& options, Initializer& initializer);
  /// Makes the weight of these images, normalised as the network will see them: whitening_filters(). Before an
  /// optimizer or DistributedDataParallel is made: masters are copies of weights, and ranks that have other images get
  /// the weights of rank 0. Throws Error as that does, and for images of another number of channels.
  void initialize(const Tensor& images);
  Tensor forward(const Tensor& input) override;
  std::string describe() const override;
  autograd::OpKind op_kind() const override { return autograd::OpKind::convolution; }

  /// What it was made of.
  /// @{
  const Options& options() const { return options_; }
  const Tensor& weight() const { return weight_; }
  const Tensor& bias() const { return bias_; }  ///< undefined without
  std::int64_t channels() const {
    return weight_.size(0);
  }  ///< of the output
     /// @}

 private:
  Options options_;
  Tensor weight_, bias_;
};

/// The layers of a network that are made of images, in the order of named_modules().
std::vector<Whitening2d*> whitening_layers(Module& network);

/// Calls Whitening2d::initialize() of each whitening layer of a network that takes these images; of a network without
/// one it does nothing. Some thousand images, normalised and not augmented, are enough.
/// Example:
///     #include "tandem/layers/models/models.h"
///     const auto network = make_model({.name = "airbench94"});
///     initialize_from(*network, Tensor::full({10, 3, 32, 32}, 0.5));
void initialize_from(Module& network, const Tensor& images);

}  // namespace tandem::layers

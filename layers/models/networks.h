// The networks, one function each; make_model has checked the options. All but the airbench networks are trees of
// Sequentials, so that their PyTorch twins are nn.Sequential(OrderedDict(...)) of nn.Sequentials with the same state
// dict. Numbers within a Sequential count ReLU, pooling and Flatten modules, and vgg_lite's Dropout ones; the others
// have a module "dropout" before their last linear layer where they are asked for it, and those with residual blocks a
// "drop_path" in each.
// Example:
//     const std::unique_ptr<Module> network = small_cnn({.classes = 100, .seed = 1});
//     const Tensor logits = (*network)(Tensor::zeros({2, 3, 32, 32}, {.layout = Layout::channels_last}));  // [2, 100]
#pragma once

#include "tandem/layers/models/models.h"

namespace tandem::layers {

/// Six 3x3 convolutions (padding 1, bias) and three linear layers, ReLU after each but the last:
///   features:   conv c->32, conv 32->64, pool
///               conv 64->128, conv 128->256, pool
///               conv 256->256, conv 256->256, pool, flatten
///   classifier: linear 256*(size/8)^2 -> 256, dropout, linear 256 -> 32, dropout, linear 32 -> classes
/// Convolutions are features.{0,2,5,7,10,12}; with batch norm (conv, BN, ReLU, as torchvision's vgg_bn) convolutions
/// are features.{0,3,7,10,14,17} and their batch norms the numbers after. Linear layers are classifier.{0,3,6},
/// whatever the dropout.
std::unique_ptr<Module> vgg_lite(const ModelOptions& options);

/// For laptops: 25 million floating-point operations per 3x32x32 image, 0.24 million parameters. 3x3 convolutions
/// (padding 1, no bias) pooled before batch norm and ReLU, which then cost a quarter:
///   features:   conv c->32, pool, BN, ReLU
///               conv 32->64, pool, BN, ReLU
///               conv 64->128, pool, BN, ReLU
///               conv 128->128, BN, ReLU
///   classifier: global average pool, flatten, linear 128 -> classes
/// Convolutions are features.{0,4,8,12}, batch norms features.{2,6,10,13}, the linear layer classifier.2.
std::unique_ptr<Module> small_cnn(const ModelOptions& options);

/// L 3x3 convolutions (padding 1, bias) of 32 channels at full resolution, ReLU after each, then pool and linear:
///   features:   conv c->32, ReLU, (conv 32->32, ReLU) x (L-1)     convolutions are features.{0,2,4,...,2L-2}
///   classifier: pool, flatten, linear 32*(size/2)^2 -> classes   the linear layer is classifier.2
/// With shared weights features has two convolutions, 0 and 2, and 2 (with its ReLU) is applied L-1 times: the state
/// dict is that of L = 2.
std::unique_ptr<Module> mnist_cnn(const ModelOptions& options);

/// The DAWNBench network (David Page, "How to train your ResNet", 2018). A unit is 3x3 conv (no bias), BN, ReLU:
///   prep:   unit c->64
///   layer1: unit 64->128, pool, Residual(unit, unit)     layer1.{0,1}, layer1.4.body.{0,1,3,4}
///   layer2: unit 128->256, pool                          layer2.{0,1}
///   layer3: unit 256->512, pool, Residual(unit, unit)    layer3.{0,1}, layer3.4.body.{0,1,3,4}
///   classifier: max-pool of all that is left, flatten, linear 512 -> classes without bias (classifier.2), times 0.125
/// The twin's Residual is a module with one child `body` and forward x + body(x).
std::unique_ptr<Module> resnet9(const ModelOptions& options);

/// ResNet-18 for small images: a 3x3 stem of stride 1 and no max-pool, else torchvision's resnet18 and its names:
/// conv1, bn1, layer{1..4}.{0,1}.{conv1,bn1,conv2,bn2,downsample.0,downsample.1}, fc.
std::unique_ptr<Module> resnet18(const ModelOptions& options);

/// The network of the CIFAR-10 speed runs (Jordan: "94% on CIFAR-10 in 3.29 seconds on a single GPU", arXiv
/// 2404.00498): 1,971,352 trained parameters at width 1, 236 million floating-point operations forward per 3x32x32
/// image. Convolutions in groups are 3x3 (padding 1, no bias); activations are exact GELUs:
///   0:  whitening 2x2 without padding, c->8c channels, with a bias (Whitening2d); 1: GELU
///   2:  group 8c->64;  3: group 64->256;  4: group 256->256
///       conv1, max-pool 2 (an odd last row and column are left out), norm1, GELU, conv2, norm2, GELU
///   5:  max-pool of all that is left;  6: flatten;  7: linear 256 -> classes without bias;  8: times 1/9
/// Batch norms have a fixed weight of 1, a trained bias, eps 1e-12 and momentum 0.4. At first, filters of convolutions
/// are the identity as far as there are input channels (set_identity_filters()), and the whitening's filters are drawn:
/// initialize_from() makes them of images. `width` multiplies the channels of the groups, rounded. Names are those of
/// the network in legacy/airbench94.py of KellerJordan/cifar10-airbench, whose state dict fits:
/// {0,7}.weight, 0.bias, {2,3,4}.{conv1,norm1,conv2,norm2}.
/// `activation` "silu" puts SiLU in place of the GELUs in groups, and `unit_head` divides the head by the standard
/// deviation of its elements and logits by the number of its inputs: with these it is the network of
/// hiverge/cifar10-speedrun, and with the second that of airbench94_muon.py. `whitening` false puts a convolution in
/// the first layer's place that is drawn and trained, as all are without `identity_filters`.
std::unique_ptr<Module> airbench94(const ModelOptions& options);

/// The same with groups of 128, 384 and 384 channels: legacy/airbench95.py.
std::unique_ptr<Module> airbench95(const ModelOptions& options);

/// The same with groups of 128, 384 and 512 channels of three convolutions, the last two with a residual around them,
/// and momentum 0.1: legacy/airbench96.py. Behind the first GELU, whose output is x, a group has
///       conv2, norm2, GELU, conv3, norm3, + x, GELU
std::unique_ptr<Module> airbench96(const ModelOptions& options);

/// resnet9 as it became in the last part of that series (Page: "How to train your ResNet 8: Bag of Tricks", 2019, and
/// bag_of_tricks.ipynb of davidcpage/cifar10-fast). A unit is 3x3 conv (no bias), BN, CELU; where it says pool, a 2x2
/// max-pool stands between the convolution and its BN:
///   prep:   whitening 3x3 (padding 1, no bias) c->9c, conv 1x1 9c->64, BN, CELU      prep.{0,1,2}
///   layer1: unit with pool 64->128, Residual(unit, unit)     layer1.{0,2}, layer1.4.body.{0,1,3,4}
///   layer2: unit with pool 128->256                          layer2.{0,2}
///   layer3: unit with pool 256->512, Residual(unit, unit)    layer3.{0,2}, layer3.4.body.{0,1,3,4}
///   classifier: max-pool of all that is left, flatten, linear 512 -> classes without bias (classifier.2), times 1/16
/// Batch norms have a fixed weight of 1 and a trained bias, and in training normalise `ghost_batch` images at a time.
/// The whitening's filters, 9c without their negatives at an eps of 1e-2, are drawn at first: initialize_from() makes
/// them of images. `width` multiplies all channels behind the whitening, rounded.
std::unique_ptr<Module> bag_of_tricks(const ModelOptions& options);

}  // namespace tandem::layers

// Test-time augmentation: what a model says of several views of an image, averaged.
#pragma once

#include "tandem/train/forward.h"

#include <cstdint>
#include <span>
#include <string_view>

namespace tandem::train {

/// Which views: the image alone; it and its mirror image; or six, the level 2 of airbench94 (Jordan: "94% on CIFAR-10
/// in 3.29 seconds on a single GPU", 2024, arXiv:2404.00498), or the same that count alike (hiverge/cifar10-speedrun).
enum class TestTimeAugmentation : std::uint8_t { none, flip, six, six_equal };

/// "none", "flip", "six", "six-equal"
std::string_view name_of(TestTimeAugmentation augmentation);
/// All names, in the order of TestTimeAugmentation.
std::span<const std::string_view> test_time_augmentation_names();
/// The reverse of name_of(). Throws Error for a text that is none of test_time_augmentation_names().
TestTimeAugmentation parse_test_time_augmentation(std::string_view text);

/// How an image is looked at, and how much that counts.
struct ImageView {
  double weight = 1.0;       ///< of the outputs; those of all views add up to 1
  std::int64_t down = 0;     ///< pixels that the window is moved by, over the image reflected at its edges
  std::int64_t right = 0;    ///< the same; negative: to the left
  bool is_mirrored = false;  ///< left to right, behind the move
};

/// none: the image. flip: it and its mirror image, 1/2 each. six: these two at 1/4 each, and at 1/8 each the windows
/// moved up and left by a pixel and down and right by one, each as it is and mirrored. six_equal: these at 1/6 each.
std::span<const ImageView> views_of(TestTimeAugmentation augmentation);

/// That view of images N,C,H,W: of their size, on their device. Throws Error for other tensors, and unless an image is
/// larger than it is moved.
Tensor apply(const ImageView& view, const Tensor& images);

/// A function that averages what `forward` (empty: the model itself) gives for each view of a batch's first tensor, by
/// weight. It takes a forward pass for each. Outputs of half types are added up in f32. For outputs that a mirror image
/// leaves as they are, such as logits. It throws Error for inputs that are no images N,C,H,W, and for outputs that are
/// not floating. With `none` it is `forward` as given.
/// A `share` below 1 looks so only at that part of the images of each batch, rounded down, that the network is least
/// sure of: whose largest probability, the softmax of logits N,K for the image alone, is smallest, and of equal ones
/// the first. The others keep the output for the image alone. `forward` is then given the images that were chosen with
/// the labels of all. Throws Error at once unless 0 < share <= 1. Example:
///     #include "tandem/comm/backends/backend.h"
///     #include "tandem/data/synthetic.h"
///     #include "tandem/layers/models/models.h"
///     #include "tandem/train/evaluation.h"
///     const data::ImageDataset images = data::make_synthetic({.count = 20, .side = 8});
///     data::Loader loader(images, {});
///     comm::ProcessGroup alone(comm::make_self_backend());
///     const Scoring scoring({}, {}, 0.0, over_views(TestTimeAugmentation::six));
///     const auto model = layers::make_model({.name = "small_cnn", .image_size = 8});
///     const double accuracy = evaluate(*model, loader, alone, scoring).metrics.accuracy();
ForwardFunction over_views(TestTimeAugmentation augmentation, ForwardFunction forward = {}, double share = 1.0);

}  // namespace tandem::train

// Views, and sums of what a model gives for them.
#include "tandem/train/test_time_augmentation.h"

#include "tandem/autograd/functions/arithmetic.h"
#include "tandem/autograd/functions/augment.h"
#include "tandem/autograd/functions/cast.h"
#include "tandem/autograd/functions/concat.h"
#include "tandem/autograd/functions/embedding.h"
#include "tandem/autograd/functions/shape.h"
#include "tandem/core/describe.h"
#include "tandem/kernels/loss/least_confident.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>

namespace tandem::train {
namespace {

constexpr std::array<std::string_view, 4> kNames{"none", "flip", "six", "six-equal"};

constexpr std::array<ImageView, 1> kNone{{{}}};
constexpr std::array<ImageView, 2> kFlip{{{.weight = 0.5}, {.weight = 0.5, .is_mirrored = true}}};
constexpr std::array<ImageView, 6> kSix{{{.weight = 0.25},
                                         {.weight = 0.25, .is_mirrored = true},
                                         {.weight = 0.125, .down = -1, .right = -1},
                                         {.weight = 0.125, .down = -1, .right = -1, .is_mirrored = true},
                                         {.weight = 0.125, .down = 1, .right = 1},
                                         {.weight = 0.125, .down = 1, .right = 1, .is_mirrored = true}}};

/// The views of kSix, which count alike.
constexpr std::array<ImageView, 6> kSixEqual = [] {
  std::array<ImageView, 6> views = kSix;
  for (ImageView& view : views) view.weight = 1.0 / 6.0;
  return views;
}();

data::Batch with_images(const data::Batch& batch, const Tensor& images) {
  data::Batch other = batch;
  other.images = images;
  if (!other.tensors.empty()) other.tensors.front() = images;
  return other;
}

/// In f32 where it was half.
Tensor checked_output(const Tensor& output) {
  require(is_floating(output.dtype()), "test-time augmentation: outputs must be floating, got {}", describe(output));
  return is_half(output.dtype()) ? autograd::cast(output, DType::f32) : output;
}

Tensor average_over(std::span<const ImageView> views, const ForwardFunction& forward, layers::Module& model,
                    const data::Batch& batch) {
  Tensor sum;
  for (const ImageView& view : views) {
    const Tensor output = checked_output(run_forward(forward, model, with_images(batch, apply(view, batch.images))));
    const Tensor share = autograd::scale(output, view.weight);
    sum = sum.defined() ? autograd::add(sum, share) : share;
  }
  return sum;
}

/// Rows of these numbers (i64, on the same device) along the first dimension, in the layout of images.
Tensor rows_of(const Tensor& from, const Tensor& numbers) {
  const Tensor flat = autograd::reshape(from, {from.size(0), from.numel() / from.size(0)});
  const Tensor rows = autograd::embedding(numbers, flat);
  Shape shape = from.shape();
  shape[0] = numbers.size(0);
  const Tensor result = autograd::reshape(rows, shape);
  return from.rank() == 4 ? result.contiguous(Layout::channels_last) : result;
}

/// Nothing of it is read by the host, so that work on a GPU goes on, and can be recorded.
Tensor over_least_confident(std::span<const ImageView> views, const ForwardFunction& forward, double share,
                            layers::Module& model, const data::Batch& batch) {
  const Tensor alone = checked_output(run_forward(forward, model, batch));
  const std::int64_t images = batch.images.size(0);
  require(alone.rank() == 2 && alone.size(0) == images && alone.size(1) > 0,
          "test-time augmentation of a share of the images: outputs must be logits [{}, classes], got {}", images,
          describe(alone));
  // 0.29 of 100 images are 28.999999999999996 in doubles: what two roundings may take makes no image less.
  const auto count = static_cast<std::int64_t>(share * static_cast<double>(images) * (1.0 + 0x1p-51));
  if (count == 0) return alone;
  const TensorOptions numbers{.dtype = DType::i64, .device = alone.device()};
  const Tensor chosen = Tensor::empty({count}, numbers), places = Tensor::empty({images}, numbers);
  kernels::least_confident(alone.detach(), Out(chosen), Out(places));
  const Tensor again = average_over(views, forward, model, with_images(batch, rows_of(batch.images, chosen)));
  return rows_of(autograd::concat({alone, again}, 0), places);
}

}  // namespace

std::string_view name_of(TestTimeAugmentation augmentation) {
  return kNames.at(static_cast<std::size_t>(augmentation));
}

std::span<const std::string_view> test_time_augmentation_names() { return kNames; }

TestTimeAugmentation parse_test_time_augmentation(std::string_view text) {
  const auto found = std::find(kNames.begin(), kNames.end(), text);
  require(found != kNames.end(), "test-time augmentation: '{}' is none of {}", text, fmt::join(kNames, ", "));
  return static_cast<TestTimeAugmentation>(found - kNames.begin());
}

std::span<const ImageView> views_of(TestTimeAugmentation augmentation) {
  switch (augmentation) {
    case TestTimeAugmentation::none:
      return kNone;
    case TestTimeAugmentation::flip:
      return kFlip;
    case TestTimeAugmentation::six:
      return kSix;
    case TestTimeAugmentation::six_equal:
      return kSixEqual;
  }
  return {};
}

Tensor apply(const ImageView& view, const Tensor& images) {
  require(images.defined() && images.rank() == 4 && is_floating(images.dtype()),
          "test-time augmentation: needs floating images of shape N,C,H,W, got {}; leave it out (none) for other data",
          describe(images));
  Tensor result = images;
  if (view.down != 0 || view.right != 0) {
    const std::int64_t rows = std::abs(view.down), columns = std::abs(view.right);
    const Tensor padded = autograd::pad2d(
        images, {.left = columns, .right = columns, .top = rows, .bottom = rows, .mode = autograd::PadMode::reflect});
    result = autograd::crop2d(padded, rows + view.down, columns + view.right, images.size(2), images.size(3));
  }
  return view.is_mirrored ? autograd::flip_horizontal(result) : result;
}

ForwardFunction over_views(TestTimeAugmentation augmentation, ForwardFunction forward, double share) {
  require(share > 0.0 && share <= 1.0, "test-time augmentation: the share must be above 0 and at most 1, got {}",
          share);
  if (augmentation == TestTimeAugmentation::none) return forward;
  return [views = views_of(augmentation), own = std::move(forward), share](layers::Module& model,
                                                                           const data::Batch& batch) {
    if (share < 1.0) return over_least_confident(views, own, share, model, batch);
    return average_over(views, own, model, batch);
  };
}

}  // namespace tandem::train

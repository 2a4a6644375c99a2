// Views, and sums of what a model gives for them.
#include "tandem/train/test_time_augmentation.h"

#include "tandem/autograd/functions/arithmetic.h"
#include "tandem/autograd/functions/augment.h"
#include "tandem/autograd/functions/cast.h"
#include "tandem/core/describe.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>

namespace tandem::train {
namespace {

constexpr std::array<std::string_view, 3> kNames{"none", "flip", "six"};

constexpr std::array<ImageView, 1> kNone{{{}}};
constexpr std::array<ImageView, 2> kFlip{{{.weight = 0.5}, {.weight = 0.5, .is_mirrored = true}}};
constexpr std::array<ImageView, 6> kSix{{{.weight = 0.25},
                                         {.weight = 0.25, .is_mirrored = true},
                                         {.weight = 0.125, .down = -1, .right = -1},
                                         {.weight = 0.125, .down = -1, .right = -1, .is_mirrored = true},
                                         {.weight = 0.125, .down = 1, .right = 1},
                                         {.weight = 0.125, .down = 1, .right = 1, .is_mirrored = true}}};

data::Batch with_images(const data::Batch& batch, const Tensor& images) {
  data::Batch other = batch;
  other.images = images;
  if (!other.tensors.empty()) other.tensors.front() = images;
  return other;
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

ForwardFunction over_views(TestTimeAugmentation augmentation, ForwardFunction forward) {
  if (augmentation == TestTimeAugmentation::none) return forward;
  return [views = views_of(augmentation), own = std::move(forward)](layers::Module& model, const data::Batch& batch) {
    Tensor sum;
    for (const ImageView& view : views) {
      const Tensor output = run_forward(own, model, with_images(batch, apply(view, batch.images)));
      require(is_floating(output.dtype()), "test-time augmentation: outputs must be floating, got {}",
              describe(output));
      const Tensor wide = is_half(output.dtype()) ? autograd::cast(output, DType::f32) : output;
      const Tensor share = autograd::scale(wide, view.weight);
      sum = sum.defined() ? autograd::add(sum, share) : share;
    }
    return sum;
  };
}

}  // namespace tandem::train

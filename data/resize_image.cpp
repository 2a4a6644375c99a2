// Resizing in two passes, along rows and along columns, each by weights that are worked out once.
#include "tandem/core/describe.h"
#include "tandem/core/out.h"
#include "tandem/data/read_image.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace tandem::data {

namespace {

/// The source pixels that make one new pixel, and how much of each.
struct Taps {
  std::int64_t first = 0;
  std::vector<float> weights;  // their sum is 1
};

/// The part [begin, begin + length) of `size` source pixels, as `count` new ones: a triangle around each new one's
/// middle, as wide as two new pixels or two source pixels, whichever is more.
std::vector<Taps> make_taps(std::int64_t size, double begin, double length, std::int64_t count) {
  std::vector<Taps> all;
  const double scale = length / static_cast<double>(count), half_width = std::max(scale, 1.0);
  for (std::int64_t i = 0; i < count; ++i) {
    const double middle = begin + (static_cast<double>(i) + 0.5) * scale;
    const auto low = std::max<std::int64_t>(0, static_cast<std::int64_t>(std::floor(middle - half_width + 0.5)));
    const auto high = std::min(size, static_cast<std::int64_t>(std::floor(middle + half_width + 0.5)));
    Taps taps{low, {}};
    double sum = 0.0;
    for (std::int64_t at = low; at < high; ++at) {
      const double weight = std::max(0.0, 1.0 - std::abs(static_cast<double>(at) + 0.5 - middle) / half_width);
      taps.weights.push_back(static_cast<float>(weight));
      sum += weight;
    }
    for (float& weight : taps.weights) weight = static_cast<float>(weight / sum);
    all.push_back(std::move(taps));
  }
  return all;
}

/// `rows` x `columns` new pixels of a plane of that `width`. `wide` is working space.
void resize_plane(const std::uint8_t* plane, std::int64_t width, const std::vector<Taps>& rows,
                  const std::vector<Taps>& columns, std::vector<float>& wide, std::uint8_t* out) {
  const std::int64_t first = rows.front().first, new_width = std::ssize(columns);
  const std::int64_t last = rows.back().first + std::ssize(rows.back().weights);
  wide.assign(static_cast<std::size_t>((last - first) * new_width), 0.0f);
  float* value = wide.data();
  for (std::int64_t y = first; y < last; ++y) {
    for (const Taps& taps : columns) {
      const std::uint8_t* const from = plane + y * width + taps.first;
      float sum = 0.0f;
      for (std::size_t k = 0; k < taps.weights.size(); ++k) sum += taps.weights[k] * static_cast<float>(from[k]);
      *value++ = sum;
    }
  }
  std::vector<float> sums(columns.size());
  for (const Taps& taps : rows) {
    std::fill(sums.begin(), sums.end(), 0.5f);  // rounds
    for (std::size_t k = 0; k < taps.weights.size(); ++k) {
      const float* const from = wide.data() + (taps.first - first + static_cast<std::int64_t>(k)) * new_width;
      for (std::size_t x = 0; x < sums.size(); ++x) sums[x] += taps.weights[k] * from[x];
    }
    for (const float sum : sums) *out++ = static_cast<std::uint8_t>(std::clamp(sum, 0.0f, 255.0f));
  }
}

}  // namespace

Tensor resize_image(const Tensor& image, ImageSize size, ImageFit fit) {
  require(image.defined() && image.rank() == 3 && image.dtype() == DType::u8 && image.device() == Device{} &&
              image.numel() > 0,
          "resize_image: needs an image u8 [C, H, W] on the CPU, got {}; one image at a time", image);
  require(size.height >= 1 && size.width >= 1, "resize_image: size {} x {} must be 1 x 1 or more", size.height,
          size.width);
  const std::int64_t channels = image.size(0), height = image.size(1), width = image.size(2);
  const Tensor planes = image.detach().contiguous();
  if (size == ImageSize{height, width}) return planes;
  const MemoryTagScope tag(MemoryTag::data);
  // First of all: for a size that no memory holds, the weights would take more yet.
  const Tensor result = Tensor::empty({channels, size.height, size.width}, {.dtype = DType::u8});
  double used_height = static_cast<double>(height), used_width = static_cast<double>(width);
  if (fit == ImageFit::crop) {
    const double shape = static_cast<double>(size.height) / static_cast<double>(size.width);
    used_height = std::min(used_height, used_width * shape);
    used_width = std::min(used_width, used_height / shape);
  }
  const auto rows = make_taps(height, (static_cast<double>(height) - used_height) / 2, used_height, size.height);
  const auto columns = make_taps(width, (static_cast<double>(width) - used_width) / 2, used_width, size.width);
  auto* const out = Out(result).data<std::uint8_t>();
  std::vector<float> wide;
  for (std::int64_t c = 0; c < channels; ++c)
    resize_plane(planes.data<std::uint8_t>() + c * height * width, width, rows, columns, wide,
                 out + c * size.height * size.width);
  return result;
}

}  // namespace tandem::data

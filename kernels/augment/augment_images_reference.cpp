// augment_images, one plain step after the other in double precision.
#include "tandem/kernels/augment/augment_images_implementations.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

namespace tandem::kernels::reference {

namespace {

/// One image as C x H x W doubles in [0, 1].
struct Planes {
  std::int64_t channels, height, width;
  std::vector<double> values;

  Planes(std::int64_t c, std::int64_t h, std::int64_t w)
      : channels(c), height(h), width(w), values(static_cast<std::size_t>(c * h * w)) {}
  double& at(std::int64_t c, std::int64_t y, std::int64_t x) {
    return values[static_cast<std::size_t>((c * height + y) * width + x)];
  }
  double at(std::int64_t c, std::int64_t y, std::int64_t x) const {
    return values[static_cast<std::size_t>((c * height + y) * width + x)];
  }
  bool has(std::int64_t y, std::int64_t x) const { return y >= 0 && y < height && x >= 0 && x < width; }
  double at_or_black(std::int64_t c, std::int64_t y, std::int64_t x) const { return has(y, x) ? at(c, y, x) : 0.0; }
};

std::int64_t reflect(std::int64_t position, std::int64_t size) {
  if (position < 0) return -position;
  return position < size ? position : 2 * (size - 1) - position;
}

template <typename Pixel>
Planes make_planes(const Planes& like, Pixel&& pixel) {
  Planes result(like.channels, like.height, like.width);
  for (std::int64_t c = 0; c < like.channels; ++c)
    for (std::int64_t y = 0; y < like.height; ++y)
      for (std::int64_t x = 0; x < like.width; ++x) result.at(c, y, x) = pixel(c, y, x);
  return result;
}

Planes shift(const Planes& image, int dy, int dx, BorderMode border) {
  return make_planes(image, [&](std::int64_t c, std::int64_t y, std::int64_t x) {
    if (border == BorderMode::zero) return image.at_or_black(c, y + dy, x + dx);
    return image.at(c, reflect(y + dy, image.height), reflect(x + dx, image.width));
  });
}

Planes flip(const Planes& image) {
  return make_planes(
      image, [&](std::int64_t c, std::int64_t y, std::int64_t x) { return image.at(c, y, image.width - 1 - x); });
}

Planes rotate(const Planes& image, double degrees) {
  const double angle = degrees * std::numbers::pi / 180.0;
  const double centre_y = static_cast<double>(image.height - 1) / 2.0;
  const double centre_x = static_cast<double>(image.width - 1) / 2.0;
  return make_planes(image, [&](std::int64_t c, std::int64_t y, std::int64_t x) {
    const double dy = static_cast<double>(y) - centre_y;
    const double dx = static_cast<double>(x) - centre_x;
    const double from_x = std::cos(angle) * dx - std::sin(angle) * dy + centre_x;
    const double from_y = std::sin(angle) * dx + std::cos(angle) * dy + centre_y;
    const auto left = static_cast<std::int64_t>(std::floor(from_x));
    const auto top = static_cast<std::int64_t>(std::floor(from_y));
    const double u = from_x - std::floor(from_x);
    const double v = from_y - std::floor(from_y);
    return (1 - v) * ((1 - u) * image.at_or_black(c, top, left) + u * image.at_or_black(c, top, left + 1)) +
           v * ((1 - u) * image.at_or_black(c, top + 1, left) + u * image.at_or_black(c, top + 1, left + 1));
  });
}

double grey(const Planes& image, std::int64_t y, std::int64_t x) {
  if (image.channels != 3) {
    double sum = 0;
    for (std::int64_t c = 0; c < image.channels; ++c) sum += image.at(c, y, x);
    return sum / static_cast<double>(image.channels);
  }
  return 0.2989 * image.at(0, y, x) + 0.587 * image.at(1, y, x) + 0.114 * image.at(2, y, x);
}

double blend(double a, double b, double factor) { return std::clamp(factor * a + (1 - factor) * b, 0.0, 1.0); }

Planes adjust_color(const Planes& image, int what, const ImageAugment& augment) {
  double mean_grey = 0;
  for (std::int64_t y = 0; y < image.height; ++y)
    for (std::int64_t x = 0; x < image.width; ++x) mean_grey += grey(image, y, x);
  mean_grey /= static_cast<double>(image.height * image.width);
  return make_planes(image, [&](std::int64_t c, std::int64_t y, std::int64_t x) {
    const double value = image.at(c, y, x);
    if (what == 0) return blend(value, 0.0, augment.brightness);
    if (what == 1) return blend(value, mean_grey, augment.contrast);
    return image.channels == 3 ? blend(value, grey(image, y, x), augment.saturation) : value;
  });
}

}  // namespace

void augment_images(const Tensor& source, std::span<const std::int64_t> indices, std::span<const ImageAugment> augments,
                    const AugmentImagesOptions& options, const Out& out) {
  const std::int64_t channels = source.size(1), height = source.size(2), width = source.size(3);
  const auto* bytes = source.data<std::uint8_t>();
  for (std::size_t i = 0; i < indices.size(); ++i) {
    Planes image(channels, height, width);
    const auto size = static_cast<std::int64_t>(image.values.size());
    for (std::int64_t k = 0; k < size; ++k)
      image.values[static_cast<std::size_t>(k)] = static_cast<double>(bytes[indices[i] * size + k]) / 255.0;

    const ImageAugment augment = augments.empty() ? ImageAugment{} : augments[i];
    image = shift(image, augment.shift_y, augment.shift_x, options.border);
    if (augment.flip) image = flip(image);
    if (augment.degrees != 0.0F) image = rotate(image, augment.degrees);
    if (augment.changes_color())
      for (const int what : augment.color_order) image = adjust_color(image, what, augment);

    const PixelBox& box = augment.cutout;
    dispatch_floating(out.dtype(), "augment_images", [&](auto tag) {
      using T = typename decltype(tag)::type;
      T* values = out.data<T>() + static_cast<std::int64_t>(i) * out.stride(0);
      for (std::int64_t c = 0; c < channels; ++c)
        for (std::int64_t y = 0; y < height; ++y)
          for (std::int64_t x = 0; x < width; ++x) {
            const bool cut = y >= box.top && y < box.bottom && x >= box.left && x < box.right;
            const auto channel = static_cast<std::size_t>(c);
            const double normalised = (image.at(c, y, x) - options.mean[channel]) / options.deviation[channel];
            const double value = (normalised + static_cast<double>(augment.offset)) * static_cast<double>(augment.gain);
            values[c * out.stride(1) + y * out.stride(2) + x * out.stride(3)] =
                static_cast<T>(static_cast<compute_t<T>>(cut ? 0.0 : value));
          }
    });
  }
}

}  // namespace tandem::kernels::reference

// augment_images for channels_last output of floats or halves: row by row from bytes where pixels only move, through
// float planes where they are mixed.
#include "tandem/kernels/augment/augment_images_implementations.h"
#include "tandem/kernels/cast/float_runs.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

namespace tandem::kernels::cpu {

namespace {

struct Geometry {
  std::int64_t channels, height, width;

  std::int64_t pixels() const { return height * width; }
};

/// Normalisation of a value v as v * scale + bias.
struct Affine {
  std::vector<float> scale, bias;

  Affine(const AugmentImagesOptions& options, float unit) {
    for (std::size_t c = 0; c < options.mean.size(); ++c) {
      scale.push_back(unit / options.deviation[c]);
      bias.push_back(-options.mean[c] / options.deviation[c]);
    }
  }
};

std::int64_t reflect(std::int64_t position, std::int64_t size) {
  if (position < 0) return -position;
  return position < size ? position : 2 * (size - 1) - position;
}

/// One row of `plane`, moved and perhaps flipped: row[x] = plane(y + shift_y, x + shift_x), x from the right if
/// flipped.
void move_row(const std::uint8_t* plane, const Geometry& geometry, std::int64_t y, const ImageAugment& augment,
              BorderMode border, std::uint8_t* row) {
  const std::int64_t width = geometry.width;
  std::int64_t from_y = y + augment.shift_y;
  if (border == BorderMode::reflect) from_y = reflect(from_y, geometry.height);
  if (from_y < 0 || from_y >= geometry.height) {
    std::fill_n(row, width, std::uint8_t{0});
    return;
  }
  const std::uint8_t* from = plane + from_y * width;
  const std::int64_t begin = std::clamp<std::int64_t>(-augment.shift_x, 0, width);
  const std::int64_t end = std::clamp<std::int64_t>(width - augment.shift_x, begin, width);
  const bool mirror = border == BorderMode::reflect;
  for (std::int64_t x = 0; x < begin; ++x)
    row[x] = mirror ? from[reflect(x + augment.shift_x, width)] : std::uint8_t{0};
  if (end > begin) std::copy_n(from + begin + augment.shift_x, end - begin, row + begin);
  for (std::int64_t x = end; x < width; ++x)
    row[x] = mirror ? from[reflect(x + augment.shift_x, width)] : std::uint8_t{0};
  if (augment.flip) std::reverse(row, row + width);
}

/// out[x][c] = rows[c][x] * scale[c] + bias[c]; `rows` are `stride` values apart.
template <typename T>
void write_normalised(const T* __restrict rows, std::int64_t stride, std::int64_t channels, std::int64_t width,
                      const Affine& affine, float* __restrict out) {
  if (channels == 1) {
    const float scale = affine.scale[0], bias = affine.bias[0];
    for (std::int64_t x = 0; x < width; ++x) out[x] = static_cast<float>(rows[x]) * scale + bias;
  } else if (channels == 3) {
    const float scale0 = affine.scale[0], scale1 = affine.scale[1], scale2 = affine.scale[2];
    const float bias0 = affine.bias[0], bias1 = affine.bias[1], bias2 = affine.bias[2];
    const T *red = rows, *green = rows + stride, *blue = rows + 2 * stride;
    for (std::int64_t x = 0; x < width; ++x) {
      out[3 * x] = static_cast<float>(red[x]) * scale0 + bias0;
      out[3 * x + 1] = static_cast<float>(green[x]) * scale1 + bias1;
      out[3 * x + 2] = static_cast<float>(blue[x]) * scale2 + bias2;
    }
  } else {
    for (std::int64_t c = 0; c < channels; ++c)
      for (std::int64_t x = 0; x < width; ++x)
        out[x * channels + c] = static_cast<float>(rows[c * stride + x]) * affine.scale[static_cast<std::size_t>(c)] +
                                affine.bias[static_cast<std::size_t>(c)];
  }
}

/// Planes with a black frame, so that bilinear taps need no test: one pixel before, two after.
class FramedPlanes {
 public:
  explicit FramedPlanes(const Geometry& geometry)
      : pitch_(geometry.width + 3),
        plane_(pitch_ * (geometry.height + 3)),
        values_(static_cast<std::size_t>(plane_ * geometry.channels)) {}

  float* row(std::int64_t c, std::int64_t y) { return values_.data() + c * plane_ + (y + 1) * pitch_ + 1; }
  std::int64_t pitch() const { return pitch_; }

 private:
  std::int64_t pitch_, plane_;
  std::vector<float> values_;
};

/// `to` (dense planes) = `from`, rotated by `degrees` counter-clockwise about the centre.
void rotate(FramedPlanes& from, const Geometry& geometry, float degrees, float* to) {
  const double angle = static_cast<double>(degrees) * std::numbers::pi / 180.0;
  const auto cosine = static_cast<float>(std::cos(angle)), sine = static_cast<float>(std::sin(angle));
  const auto width = static_cast<float>(geometry.width), height = static_cast<float>(geometry.height);
  const float centre_x = (width - 1.0F) / 2.0F, centre_y = (height - 1.0F) / 2.0F;
  const std::int64_t pitch = from.pitch();
  for (std::int64_t y = 0; y < geometry.height; ++y) {
    const float dy = static_cast<float>(y) - centre_y;
    for (std::int64_t x = 0; x < geometry.width; ++x) {
      const float dx = static_cast<float>(x) - centre_x;
      const float from_x = std::clamp(cosine * dx - sine * dy + centre_x, -1.0F, width);
      const float from_y = std::clamp(sine * dx + cosine * dy + centre_y, -1.0F, height);
      const float left = std::floor(from_x), top = std::floor(from_y);
      const float u = from_x - left, v = from_y - top;
      const std::int64_t offset = static_cast<std::int64_t>(top) * pitch + static_cast<std::int64_t>(left);
      for (std::int64_t c = 0; c < geometry.channels; ++c) {
        const float* tap = from.row(c, 0) + offset;
        const float upper = tap[0] + u * (tap[1] - tap[0]);
        const float lower = tap[pitch] + u * (tap[pitch + 1] - tap[pitch]);
        to[c * geometry.pixels() + y * geometry.width + x] = upper + v * (lower - upper);
      }
    }
  }
}

void make_grey(const float* planes, const Geometry& geometry, float* grey) {
  const std::int64_t pixels = geometry.pixels();
  if (geometry.channels == 3) {
    for (std::int64_t i = 0; i < pixels; ++i)
      grey[i] = 0.2989F * planes[i] + 0.587F * planes[pixels + i] + 0.114F * planes[2 * pixels + i];
    return;
  }
  std::copy_n(planes, pixels, grey);
  for (std::int64_t c = 1; c < geometry.channels; ++c)
    for (std::int64_t i = 0; i < pixels; ++i) grey[i] += planes[c * pixels + i];
  const float share = 1.0F / static_cast<float>(geometry.channels);
  for (std::int64_t i = 0; i < pixels; ++i) grey[i] *= share;
}

float blend(float a, float b, float factor) { return std::clamp(factor * a + (1.0F - factor) * b, 0.0F, 1.0F); }

void adjust_color(float* planes, const Geometry& geometry, const ImageAugment& augment, float* grey) {
  const std::int64_t pixels = geometry.pixels(), all = geometry.channels * pixels;
  for (const int what : augment.color_order) {
    if (what == 0 && augment.brightness != 1.0F) {
      for (std::int64_t i = 0; i < all; ++i) planes[i] = blend(planes[i], 0.0F, augment.brightness);
    } else if (what == 1 && augment.contrast != 1.0F) {
      make_grey(planes, geometry, grey);
      const float units = detail::grey_units(pixels);
      long long sum = 0;
      for (std::int64_t i = 0; i < pixels; ++i) sum += detail::to_grey_units(grey[i], units);
      const float mean = detail::mean_of_grey_units(sum, units, pixels);
      for (std::int64_t i = 0; i < all; ++i) planes[i] = blend(planes[i], mean, augment.contrast);
    } else if (what == 2 && augment.saturation != 1.0F && geometry.channels == 3) {
      make_grey(planes, geometry, grey);
      for (std::int64_t c = 0; c < 3; ++c)
        for (std::int64_t i = 0; i < pixels; ++i)
          planes[c * pixels + i] = blend(planes[c * pixels + i], grey[i], augment.saturation);
    }
  }
}

void change_values(const ImageAugment& augment, std::int64_t count, float* values) {
  const float offset = augment.offset, gain = augment.gain;
  for (std::int64_t i = 0; i < count; ++i) values[i] = (values[i] + offset) * gain;
}

void cut_out(const PixelBox& box, const Geometry& geometry, float* out) {
  const std::int64_t top = std::max(box.top, 0), bottom = std::min<std::int64_t>(box.bottom, geometry.height);
  const std::int64_t left = std::max(box.left, 0), right = std::min<std::int64_t>(box.right, geometry.width);
  for (std::int64_t y = top; y < bottom && left < right; ++y)
    std::fill_n(out + (y * geometry.width + left) * geometry.channels, (right - left) * geometry.channels, 0.0F);
}

/// Does one image after the other, keeping its buffers.
class Augmenter {
 public:
  Augmenter(const Geometry& geometry, const AugmentImagesOptions& options)
      : geometry_(geometry),
        border_(options.border),
        from_bytes_(options, 1.0F / 255.0F),
        from_unit_(options, 1.0F),
        rows_(static_cast<std::size_t>(geometry.channels * geometry.width)) {}

  void run(const std::uint8_t* image, const ImageAugment& augment, float* out) {
    if (augment.degrees != 0.0F || augment.changes_color()) {
      mix(image, augment, out);
    } else {
      for (std::int64_t y = 0; y < geometry_.height; ++y) {
        move_rows(image, augment, y);
        write_normalised(rows_.data(), geometry_.width, geometry_.channels, geometry_.width, from_bytes_,
                         out + y * geometry_.width * geometry_.channels);
      }
    }
    if (augment.changes_values()) change_values(augment, geometry_.channels * geometry_.pixels(), out);
    cut_out(augment.cutout, geometry_, out);
  }

 private:
  void move_rows(const std::uint8_t* image, const ImageAugment& augment, std::int64_t y) {
    for (std::int64_t c = 0; c < geometry_.channels; ++c)
      move_row(image + c * geometry_.pixels(), geometry_, y, augment, border_, rows_.data() + c * geometry_.width);
  }

  void mix(const std::uint8_t* image, const ImageAugment& augment, float* out) {
    const std::int64_t width = geometry_.width, pixels = geometry_.pixels();
    planes_.resize(static_cast<std::size_t>(geometry_.channels * pixels));
    grey_.resize(static_cast<std::size_t>(pixels));
    const bool rotates = augment.degrees != 0.0F;
    for (std::int64_t y = 0; y < geometry_.height; ++y) {
      move_rows(image, augment, y);
      for (std::int64_t c = 0; c < geometry_.channels; ++c) {
        float* to = rotates ? framed_.row(c, y) : planes_.data() + c * pixels + y * width;
        const std::uint8_t* row = rows_.data() + c * width;
        for (std::int64_t x = 0; x < width; ++x) to[x] = static_cast<float>(row[x]) * (1.0F / 255.0F);
      }
    }
    if (rotates) rotate(framed_, geometry_, augment.degrees, planes_.data());
    if (augment.changes_color()) adjust_color(planes_.data(), geometry_, augment, grey_.data());
    write_normalised(planes_.data(), pixels, geometry_.channels, pixels, from_unit_, out);
  }

  Geometry geometry_;
  BorderMode border_;
  Affine from_bytes_, from_unit_;
  std::vector<std::uint8_t> rows_;
  std::vector<float> planes_, grey_;
  FramedPlanes framed_{geometry_};
};

}  // namespace

bool augment_images_supports(const Tensor& out) {
  return computes_in_float(out.dtype()) && out.is_dense(Layout::channels_last);
}

void augment_images(const Tensor& source, std::span<const std::int64_t> indices, std::span<const ImageAugment> augments,
                    const AugmentImagesOptions& options, const Out& out) {
  const Geometry geometry{source.size(1), source.size(2), source.size(3)};
  const std::int64_t size = geometry.channels * geometry.pixels();
  Augmenter augmenter(geometry, options);
  const auto* bytes = source.data<std::uint8_t>();
  dispatch_float(out.dtype(), "augment_images", [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* const values = out.data<T>();
    std::vector<float> whole(static_cast<std::size_t>(is_float<T> ? 0 : size));
    for (std::size_t i = 0; i < indices.size(); ++i) {
      T* const image = values + static_cast<std::int64_t>(i) * size;
      float* to = whole.data();
      if constexpr (is_float<T>) to = image;
      augmenter.run(bytes + indices[i] * size, augments.empty() ? ImageAugment{} : augments[i], to);
      if constexpr (!is_float<T>) round_floats(to, size, image);
    }
  });
}

}  // namespace tandem::kernels::cpu

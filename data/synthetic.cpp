// Drawing the synthetic images.
#include "tandem/data/synthetic.h"

#include "tandem/core/out.h"
#include "tandem/core/parallel.h"
#include "tandem/core/random.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

namespace tandem::data {

namespace {

constexpr std::int64_t kClasses = 10;
constexpr std::int64_t kLayoutWords = 32;  // what place, size, tilt and colours may draw
constexpr float kNoise = 0.12F;

/// Whether shape `label` covers a point; the shape lies in the circle of radius 1, v points down.
bool covers(std::int64_t label, float u, float v) {
  const float radius = std::sqrt(u * u + v * v);
  const float box = std::max(std::abs(u), std::abs(v));
  const auto plus = [](float a, float b) {
    return std::max(std::abs(a), std::abs(b)) < 0.95F && std::min(std::abs(a), std::abs(b)) < 0.28F;
  };
  constexpr float kStripes = 8.0F;  // 2.5 periods over the diameter
  switch (label) {
    case 0:
      return radius < 0.9F;
    case 1:
      return radius > 0.5F && radius < 1.0F;
    case 2:
      return box < 0.8F;
    case 3:
      return box > 0.45F && box < 0.85F;
    case 4:
      return v < 0.7F && v > -0.95F + 1.8F * std::abs(u);
    case 5:
      return plus(u, v);
    case 6:
      return plus((u + v) * 0.7071F, (u - v) * 0.7071F);
    case 7:
      return radius < 1.0F && std::cos(kStripes * v) > 0.0F;
    case 8:
      return radius < 1.0F && std::cos(kStripes * u) > 0.0F;
    default:
      return box < 0.85F && std::sin(3.6F * u) * std::sin(3.6F * v) > 0.0F;
  }
}

/// The random numbers of one image: first those of its layout, then two bytes of noise per value.
class ImageRandom {
 public:
  ImageRandom(const SyntheticOptions& options, std::int64_t image)
      : key_{options.seed, RandomStream::synthetic, static_cast<std::uint32_t>(options.split)} {
    const std::int64_t values = options.channels * options.side * options.side;
    first_block_ = static_cast<std::uint64_t>(image * (kLayoutWords / 4 + (values + 7) / 8));
  }

  float uniform(float low, float high) { return low + (high - low) * key_.uniform(4 * first_block_ + word_++); }
  bool coin() { return (key_.bits(4 * first_block_ + word_++) & 1u) != 0; }

  /// Eight values in [-1, 1], distributed as a triangle around 0.
  std::array<float, 8> noise(std::int64_t group) const {
    const auto words = key_.block(first_block_ + kLayoutWords / 4 + static_cast<std::uint64_t>(group));
    std::array<float, 8> result;
    for (std::size_t i = 0; i < 8; ++i) {
      const std::uint32_t pair = words[i / 2] >> (16 * (i % 2));
      result[i] = (static_cast<float>(pair & 0xffu) + static_cast<float>((pair >> 8) & 0xffu)) / 255.0F - 1.0F;
    }
    return result;
  }

 private:
  RandomKey key_;
  std::uint64_t first_block_ = 0, word_ = 0;
};

struct Colors {
  std::array<float, 4> ground, figure;
};

Colors draw_colors(ImageRandom& random) {
  Colors colors;
  for (std::size_t c = 0; c < 4; ++c) {
    colors.ground[c] = random.uniform(0.3F, 0.7F);
    const float contrast = random.uniform(0.25F, 0.55F);
    colors.figure[c] = colors.ground[c] + (random.coin() ? contrast : -contrast);
  }
  return colors;
}

/// `mask` is working space of side x side.
void draw(const SyntheticOptions& options, std::int64_t image, std::vector<std::uint8_t>& mask, std::uint8_t* bytes) {
  ImageRandom random(options, image);
  const auto side = static_cast<float>(options.side);
  const float size = side * random.uniform(0.24F, 0.42F);
  const float centre_y = random.uniform(size * 0.9F, side - size * 0.9F);
  const float centre_x = random.uniform(size * 0.9F, side - size * 0.9F);
  const float tilt = random.uniform(-0.25F, 0.25F);
  const float cosine = std::cos(tilt) / size, sine = std::sin(tilt) / size;
  const float shade_y = random.uniform(-0.15F, 0.15F) / side, shade_x = random.uniform(-0.15F, 0.15F) / side;
  const Colors colors = draw_colors(random);

  const auto place = [](std::int64_t position, float centre) { return static_cast<float>(position) + 0.5F - centre; };
  for (std::int64_t y = 0; y < options.side; ++y) {
    for (std::int64_t x = 0; x < options.side; ++x) {
      const float dy = place(y, centre_y), dx = place(x, centre_x);
      mask[static_cast<std::size_t>(y * options.side + x)] =
          covers(image % kClasses, cosine * dx + sine * dy, cosine * dy - sine * dx);
    }
  }
  std::array<float, 8> noise{};
  std::int64_t index = 0;
  for (std::size_t c = 0; c < static_cast<std::size_t>(options.channels); ++c) {
    std::size_t pixel = 0;
    for (std::int64_t y = 0; y < options.side; ++y) {
      for (std::int64_t x = 0; x < options.side; ++x, ++pixel, ++index) {
        if (index % 8 == 0) noise = random.noise(index / 8);
        const float value = (mask[pixel] != 0 ? colors.figure[c] : colors.ground[c]) + shade_y * place(y, centre_y) +
                            shade_x * place(x, centre_x) + kNoise * noise[static_cast<std::size_t>(index % 8)];
        bytes[index] = static_cast<std::uint8_t>(std::floor(std::clamp(value, 0.0F, 1.0F) * 255.0F + 0.5F));
      }
    }
  }
}

}  // namespace

ImageDataset make_synthetic(const SyntheticOptions& options) {
  require(options.count >= 1 && options.count <= 1'000'000, "synthetic: {} images asked for, expected 1 to 1000000",
          options.count);
  require(options.channels >= 1 && options.channels <= 4 && options.side >= 8 && options.side <= 256,
          "synthetic: {} channels of {} x {} asked for, expected 1 to 4 channels and sides of 8 to 256",
          options.channels, options.side, options.side);
  const MemoryTagScope tag(MemoryTag::data);
  ImageDataset dataset;
  dataset.name = "synthetic";
  dataset.images = Tensor::empty({options.count, options.channels, options.side, options.side}, {.dtype = DType::u8});
  dataset.labels = Tensor::empty({options.count}, {.dtype = DType::i64});
  auto* bytes = Out(dataset.images).data<std::uint8_t>();
  auto* labels = Out(dataset.labels).data<std::int64_t>();
  const std::int64_t image_bytes = options.channels * options.side * options.side;
  parallel_for(options.count, 64, [&](std::int64_t begin, std::int64_t end) {
    std::vector<std::uint8_t> mask(static_cast<std::size_t>(options.side * options.side));
    for (std::int64_t i = begin; i < end; ++i) {
      draw(options, i, mask, bytes + i * image_bytes);
      labels[i] = i % kClasses;
    }
  });
  dataset.class_names = {
      "disc",        "ring", "square", "frame", "triangle", "plus", "cross", "horizontal stripes", "vertical stripes",
      "checkerboard"};
  dataset.mean.assign(static_cast<std::size_t>(options.channels), 0.5F);
  dataset.deviation.assign(static_cast<std::size_t>(options.channels), 0.22F);
  return dataset;
}

}  // namespace tandem::data

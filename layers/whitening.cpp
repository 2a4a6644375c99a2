// Second moments of patches, the filters made of them, and the layer.
#include "tandem/layers/whitening.h"

#include "tandem/autograd/functions/cast.h"
#include "tandem/autograd/functions/conv2d.h"
#include "tandem/autograd/grad_mode.h"
#include "tandem/autograd/variable.h"
#include "tandem/core/describe.h"
#include "tandem/core/parallel.h"
#include "tandem/layers/symmetric_eigen.h"

#include <algorithm>
#include <cmath>
#include <span>

namespace tandem::layers {

namespace {

constexpr std::int64_t kMostNumbers = 1024;  // of a patch

void check_patch(std::string_view what, std::int64_t channels, const HeightWidth& kernel) {
  require(channels > 0 && kernel.height > 0 && kernel.width > 0,
          "{}: {} channels with a {}x{} kernel: all sizes must be positive", what, channels, kernel.height,
          kernel.width);
  require(channels <= kMostNumbers && kernel.height <= kMostNumbers && kernel.width <= kMostNumbers &&
              channels * kernel.height * kernel.width <= kMostNumbers,
          "{}: a patch of {} channels with a {}x{} kernel has more than {} numbers; choose a smaller kernel", what,
          channels, kernel.height, kernel.width, kMostNumbers);
}

void check_eps(std::string_view what, double eps) {
  require(std::isfinite(eps) && eps > 0.0, "{}: eps must be a finite number above 0, got {}", what, eps);
}

/// The patches of images in memory.
struct Patches {
  const float* images;
  Strides strides;
  std::int64_t rows, columns;         // of patches in an image
  std::vector<std::int64_t> offsets;  // of a patch's numbers from its first

  Patches(const Tensor& from, const HeightWidth& kernel)
      : images(from.data<float>()),
        strides(from.strides()),
        rows(from.size(2) - kernel.height + 1),
        columns(from.size(3) - kernel.width + 1) {
    for (std::int64_t c = 0; c < from.size(1); ++c)
      for (std::int64_t r = 0; r < kernel.height; ++r)
        for (std::int64_t s = 0; s < kernel.width; ++s)
          offsets.push_back(c * strides[1] + r * strides[2] + s * strides[3]);
  }

  /// Adds the products of all pairs of numbers, of columns from the row on.
  void add_products(std::int64_t image, std::span<double> sums) const {
    const std::size_t size = offsets.size();
    std::vector<double> patch(size);
    for (std::int64_t i = 0; i < rows * columns; ++i) {
      const float* const corner = images + image * strides[0] + i / columns * strides[2] + i % columns * strides[3];
      for (std::size_t j = 0; j < size; ++j) patch[j] = static_cast<double>(corner[offsets[j]]);
      for (std::size_t row = 0; row < size; ++row) {
        double* const to = sums.data() + row * size;
        for (std::size_t column = row; column < size; ++column) to[column] += patch[row] * patch[column];
      }
    }
  }
};

}  // namespace

std::vector<double> patch_second_moments(const Tensor& images, const HeightWidth& kernel) {
  constexpr std::string_view kWhat = "patch_second_moments";
  require(images.defined() && images.rank() == 4 && is_floating(images.dtype()),
          "{}: needs images [N, C, H, W] of floating numbers, got {}", kWhat, images);
  check_patch(kWhat, images.size(1), kernel);
  require(images.size(0) > 0 && images.size(2) >= kernel.height && images.size(3) >= kernel.width,
          "{}: {} hold no patch of {}x{}: give one image or more of that size or larger", kWhat, images, kernel.height,
          kernel.width);
  const autograd::NoGrad no_grad;
  const Tensor plain = autograd::cast(images.detach().to(Device{}), DType::f32);
  const Patches patches(plain, kernel);
  constexpr std::int64_t kImagesOfPart = 64;  // fixed: parts are added up one after another, whoever made them
  const std::int64_t count = plain.size(0), parts = (count + kImagesOfPart - 1) / kImagesOfPart;
  const std::size_t size = patches.offsets.size(), elements = size * size;
  std::vector<double> sums(static_cast<std::size_t>(parts) * elements, 0.0);
  parallel_for(parts, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t part = begin; part < end; ++part) {
      const std::span<double> own = std::span(sums).subspan(static_cast<std::size_t>(part) * elements, elements);
      for (std::int64_t image = part * kImagesOfPart; image < std::min(count, (part + 1) * kImagesOfPart); ++image)
        patches.add_products(image, own);
    }
  });
  std::vector<double> moments(elements, 0.0);
  for (std::size_t i = 0; i < sums.size(); ++i) moments[i % elements] += sums[i];
  const double number = static_cast<double>(count * patches.rows * patches.columns);
  for (std::size_t row = 0; row < size; ++row) {
    for (std::size_t column = row; column < size; ++column) {
      moments[row * size + column] /= number;
      moments[column * size + row] = moments[row * size + column];
    }
  }
  return moments;
}

Tensor whitening_filters(const Tensor& images, const HeightWidth& kernel, double eps) {
  check_eps("whitening_filters", eps);
  const std::vector<double> moments = patch_second_moments(images, kernel);
  require(std::ranges::all_of(moments, [](double moment) { return std::isfinite(moment); }),
          "whitening_filters: the images {} hold NaN or infinity; look at how they are normalised", images);
  const std::int64_t size = images.size(1) * kernel.height * kernel.width;
  const SymmetricEigen eigen = symmetric_eigen(moments, size);
  std::vector<float> filters;
  for (const double sign : {1.0, -1.0}) {
    for (std::size_t i = 0; i < eigen.vectors.size(); ++i) {
      const double lambda = std::max(0.0, eigen.values[i / static_cast<std::size_t>(size)]);  // but for rounding
      filters.push_back(static_cast<float>(sign * eigen.vectors[i] / std::sqrt(lambda + eps)));
    }
  }
  return Tensor::from(filters, {2 * size, images.size(1), kernel.height, kernel.width});
}

Whitening2d::Whitening2d(const Options& options, Initializer& initializer) : options_(options) {
  check_patch("Whitening2d", options.in, options.kernel);
  check_eps("Whitening2d", options.eps);
  require(options.padding >= 0, "Whitening2d: padding must not be negative, got {}", options.padding);
  require(options.with_bias || !options.draw_bias, "Whitening2d: there is no bias to draw; set with_bias");
  const HeightWidth& kernel = options.kernel;
  const std::int64_t fan_in = options.in * kernel.height * kernel.width;
  const std::int64_t out = (options.with_negatives ? 2 : 1) * fan_in;
  weight_ = initializer.kaiming_uniform({out, options.in, kernel.height, kernel.width}, fan_in);
  register_parameter("weight", weight_);
  if (options.with_bias) {
    bias_ = options.draw_bias ? initializer.kaiming_uniform({out}, fan_in) : Initializer::constant({out}, 0.0);
    register_parameter("bias", bias_);
  }
  autograd::set_requires_grad(weight_, false);
}

void Whitening2d::initialize(const Tensor& images) {
  require(images.defined() && images.rank() == 4 && images.size(1) == options_.in,
          "{}: needs images [N, {}, H, W] to be made of, got {}", Whitening2d::describe(), options_.in, images);
  const autograd::NoGrad no_grad;
  const Tensor filters = whitening_filters(images, options_.kernel, options_.eps).narrow(0, 0, channels());
  weight_.detach().copy_from(autograd::cast(filters, weight_.dtype()));
}

Tensor Whitening2d::forward(const Tensor& input) {
  return autograd::conv2d(input, weight_, bias_, {.padding = options_.padding, .impl = options_.impl});
}

std::string Whitening2d::describe() const {
  return fmt::format("Whitening2d({}, {}, kernel {}x{})", options_.in, channels(), options_.kernel.height,
                     options_.kernel.width);
}

std::vector<Whitening2d*> whitening_layers(Module& network) {
  std::vector<Whitening2d*> layers;
  for (const auto& [name, module] : network.named_modules()) {
    if (auto* const layer = dynamic_cast<Whitening2d*>(module)) layers.push_back(layer);
  }
  return layers;
}

void initialize_from(Module& network, const Tensor& images) {
  for (Whitening2d* const layer : whitening_layers(network)) layer->initialize(images);
}

}  // namespace tandem::layers

// Pooling, batch normalisation and augmentation under the lint.
#include "tandem/kernels/augment/augment_images.h"
#include "tandem/kernels/augment/crop2d.h"
#include "tandem/kernels/augment/flip_horizontal.h"
#include "tandem/kernels/augment/pad2d.h"
#include "tandem/kernels/norm/batch_norm.h"
#include "tandem/kernels/pool/avg_pool2d.h"
#include "tandem/kernels/pool/global_avg_pool2d.h"
#include "tandem/kernels/pool/max_pool2d.h"
#include "tests/lint/lint.h"

#include <array>

namespace tandem::test {

namespace {

const Shape kImages[] = {{2, 64, 8, 8}, {1, 128, 8, 8}, {1, 256, 4, 4}};

std::vector<LintCase> pooling() {
  std::vector<LintCase> cases;
  for (const DType dtype : {DType::f32, DType::f16}) {
    for (const Shape& shape : kImages) {
      const Tensor x = ones(shape, dtype), grad_x = ones(shape, dtype), sums = ones({shape[1]}, dtype);
      for (const kernels::Pool2dOptions& options :
           {kernels::Pool2dOptions{}, kernels::Pool2dOptions{.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}}}) {
        const Tensor y = ones(kernels::pool2d_output_shape("lint", shape, options), dtype);
        const Tensor indices = ones(y.shape(), kernels::max_pool2d_index_dtype(options));
        const auto add_case = [&](const char* op, std::function<void()> work) {
          cases.push_back({fmt::format("{} of {}, kernel {}", op, describe(x), options.kernel[0]), std::move(work)});
        };
        add_case("max_pool2d", [=] { kernels::max_pool2d_forward(x, options, Out(y), Out(indices)); });
        add_case("max_pool2d_backward", [=] { kernels::max_pool2d_backward(y, indices, options, Out(grad_x)); });
        add_case("max_pool2d_backward with sums",
                 [=] { kernels::max_pool2d_backward(y, indices, options, Out(grad_x), Out(sums)); });
        add_case("avg_pool2d", [=] { kernels::avg_pool2d_forward(x, options, Out(y)); });
        add_case("avg_pool2d_backward", [=] { kernels::avg_pool2d_backward(y, options, Out(grad_x)); });
      }
      const Tensor mean = ones({shape[0], shape[1], 1, 1}, dtype);
      cases.push_back(
          {"global_avg_pool2d of " + describe(x), [=] { kernels::global_avg_pool2d_forward(x, Out(mean)); }});
      cases.push_back({"global_avg_pool2d_backward of " + describe(x),
                       [=] { kernels::global_avg_pool2d_backward(mean, Out(grad_x)); }});
    }
  }
  return cases;
}

std::vector<LintCase> normalisation() {
  std::vector<LintCase> cases;
  for (const DType dtype : {DType::f32, DType::f16}) {
    for (const Shape& shape : {kImages[0], kImages[1], kImages[2], Shape{2, 3, 32, 32}}) {
      const Tensor x = ones(shape, dtype), y = ones(shape, dtype), grad_x = ones(shape, dtype);
      std::array<Tensor, 8> p;  // weight, bias, running mean and variance, saved mean and deviation, gradients
      for (Tensor& parameter : p) parameter = ones({shape[1]});
      for (const auto& [activation, with] :
           {std::pair(kernels::Activation::none, ""), std::pair(kernels::Activation::relu, " with ReLU"),
            std::pair(kernels::Activation::gelu, " with GELU")}) {
        const kernels::BatchNormOptions train{.activation = activation},
            eval{.training = false, .activation = activation};
        const auto add_case = [&, behind = with](const char* op, std::function<void()> work) {
          cases.push_back({fmt::format("{}{} of {}", op, behind, describe(x)), std::move(work)});
        };
        add_case("batch_norm", [=] {
          kernels::batch_norm_forward_train(x, p[0], p[1], Out(p[2]), Out(p[3]), train, Out(y), Out(p[4]), Out(p[5]));
        });
        const Tensor moments = ones({3, 1000, x.size(1)}, DType::f64, Layout::row_major);
        add_case("batch_norm from moments", [=] {
          kernels::batch_norm_forward_from_moments(x, moments, p[0], p[1], Out(p[2]), Out(p[3]), train, Out(y),
                                                   Out(p[4]), Out(p[5]));
        });
        add_case("batch_norm in evaluation", [=] {
          kernels::batch_norm_forward_eval(x, p[0], p[1], p[2], p[3], eval, Out(y), Out(p[4]), Out(p[5]));
        });
        add_case("batch_norm_backward", [=] {
          kernels::batch_norm_backward(x, p[0], p[1], p[4], p[5], train, y, Out(grad_x), Out(p[6]), Out(p[7]));
        });
        add_case("batch_norm_backward of parameters",
                 [=] { kernels::batch_norm_backward(x, p[0], p[1], p[4], p[5], train, y, {}, Out(p[6]), Out(p[7])); });
        add_case("batch_norm_backward in evaluation, of images",
                 [=] { kernels::batch_norm_backward(x, p[0], p[1], p[4], p[5], eval, y, Out(grad_x), {}, {}); });
      }
    }
  }
  return cases;
}

std::vector<LintCase> augmentation() {
  std::vector<LintCase> cases;
  const Tensor stored = ones({4, 3, 32, 32}, DType::u8, Layout::row_major);
  const Tensor grey = ones({4, 1, 28, 28}, DType::u8, Layout::row_major);
  for (const DType dtype : {DType::f32, DType::f16}) {
    for (const Tensor& source : {stored, grey}) {
      const Tensor out = ones({3, source.size(1), source.size(2), source.size(3)}, dtype);
      cases.push_back({fmt::format("augment_images from {} to {}", describe(source), name_of(dtype)), [=] {
                         const std::vector<std::int64_t> indices{2, 0, 3};
                         const std::vector<kernels::ImageAugment> augments{
                             {},
                             {.shift_y = 2, .shift_x = -3, .flip = true},
                             {.shift_x = 4, .contrast = 1.2F, .offset = 0.1F, .cutout = {2, 3, 9, 10}}};
                         const std::vector<float> mean(3, 0.5F), deviation(3, 0.25F);
                         const auto channels = static_cast<std::size_t>(source.size(1));
                         const kernels::AugmentImagesOptions options{std::span(mean).first(channels),
                                                                     std::span(deviation).first(channels)};
                         kernels::augment_images(source, indices, augments, options, Out(out));
                       }});
    }
    for (const Shape& shape : {Shape{2, 64, 8, 8}, Shape{2, 3, 32, 32}}) {
      const Tensor x = ones(shape, dtype), grad_x = ones(shape, dtype);
      const Tensor padded = ones({shape[0], shape[1], shape[2] + 8, shape[3] + 8}, dtype);
      const auto add_case = [&](const char* op, std::function<void()> work) {
        cases.push_back({fmt::format("{} of {}", op, describe(x)), std::move(work)});
      };
      for (const kernels::PadMode mode : {kernels::PadMode::zero, kernels::PadMode::reflect}) {
        const kernels::Pad2dOptions options{4, 4, 4, 4, mode};
        add_case("pad2d", [=] { kernels::pad2d(x, options, Out(padded)); });
        add_case("pad2d_backward", [=] { kernels::pad2d_backward(padded, options, Out(grad_x)); });
      }
      add_case("crop2d to", [=] { kernels::crop2d(padded, 3, 5, Out(grad_x)); });
      add_case("crop2d_backward from", [=] { kernels::crop2d_backward(x, 3, 5, Out(padded)); });
      add_case("flip_horizontal", [=] { kernels::flip_horizontal(x, Out(grad_x)); });
    }
  }
  return cases;
}

const RegisterLint register_pooling("pooling", pooling), register_normalisation("normalisation", normalisation),
    register_augmentation("augmentation", augmentation);

}  // namespace

}  // namespace tandem::test

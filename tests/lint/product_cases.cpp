// Matrix products and convolutions under the lint.
#include "tandem/kernels/conv/conv.h"
#include "tandem/kernels/conv/few_channels/few_channels.h"
#include "tandem/kernels/conv/implementations.h"
#include "tandem/kernels/conv/implicit_gemm/implicit_gemm.h"
#include "tandem/kernels/conv/ladder/ladder.h"
#include "tandem/kernels/conv/stationary/stationary.h"
#include "tandem/kernels/conv/warpgroup/warpgroup.h"
#include "tandem/kernels/float32_products.h"
#include "tandem/kernels/gemm/batched_gemm.h"
#include "tandem/kernels/gemm/gemm.h"
#include "tandem/kernels/gemm/grouped_gemm.h"
#include "tandem/kernels/gemm/grouped_gemm_implementations.h"
#include "tandem/kernels/gemm/linear.h"
#include "tests/lint/lint.h"

#include <array>

namespace tandem::test {

namespace {

std::vector<LintCase> products() {
  std::vector<LintCase> cases;
  for (const DType dtype : {DType::f32, DType::f16}) {
    for (const auto& [m, n, k] : {std::array{64, 64, 64}, std::array{32, 48, 96}, std::array{256, 512, 16}}) {
      for (const bool transpose_a : {false, true}) {
        for (const bool transpose_b : {false, true}) {
          const Tensor a = transpose_a ? ones({k, m}, dtype) : ones({m, k}, dtype);
          const Tensor b = transpose_b ? ones({n, k}, dtype) : ones({k, n}, dtype), c = ones({m, n}, dtype);
          cases.push_back({fmt::format("gemm of {}{} and {}{}", describe(a), transpose_a ? " transposed" : "",
                                       describe(b), transpose_b ? " transposed" : ""),
                           [=] { kernels::gemm(a, b, {transpose_a, transpose_b}, Out(c)); }});
        }
      }
    }
    for (const std::int64_t outputs : {10, 100, 128}) {
      const Tensor x = ones({128, 256}, dtype), y = ones({128, outputs}, dtype), grad_x = ones({128, 256}, dtype);
      const Tensor weight = ones({outputs, 256}, dtype), grad_weight = ones({outputs, 256}, dtype);
      const Tensor bias = ones({outputs}, dtype), grad_bias = ones({outputs}, dtype);
      cases.push_back({fmt::format("linear of {} to {}", describe(x), outputs),
                       [=] { kernels::linear_forward(x, weight, bias, true, Out(y)); }});
      cases.push_back({fmt::format("linear_backward of {} to {}", describe(x), outputs), [=] {
                         kernels::linear_backward(x, weight, y, y, Out(grad_x), Out(grad_weight), Out(grad_bias));
                       }});
    }
  }
  return cases;
}

std::vector<LintCase> batched_products() {
  std::vector<LintCase> cases;
  for (const DType dtype : {DType::f32, DType::f16}) {
    for (const auto& [batches, m, n, k] : {std::array{8, 32, 32, 16}, std::array{32, 64, 64, 16}}) {
      for (const bool transpose_b : {false, true}) {
        const Tensor a = ones({batches, m, k}, dtype), c = ones({batches, m, n}, dtype);
        const Tensor b = transpose_b ? ones({batches, n, k}, dtype).transpose(1, 2) : ones({batches, k, n}, dtype);
        cases.push_back(
            {fmt::format("batched_gemm of {} and {}{}", describe(a), transpose_b ? "transposed " : "", describe(b)),
             [=] { kernels::batched_gemm(a, b, Out(c)); }});
      }
    }
  }
  return cases;
}

/// Grams of small matrices and of tall ones, as Newton-Schulz takes them, and what becomes of products of a library.
std::vector<LintCase> grouped_products() {
  std::vector<LintCase> cases;
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const Tensor x = ones({2, 64, 256}, dtype), gram = ones({2, 64, 64}, dtype);
    const Tensor small = ones({1, 24, 36}, dtype), small_gram = ones({1, 24, 24}, dtype);
    const kernels::GroupedProduct large{x, x.transpose(1, 2), Out(gram)};
    const std::vector<kernels::GroupedProduct> grams{large, {small, small.transpose(1, 2), Out(small_gram)}};
    cases.push_back({fmt::format("grouped_gemm of {} and {}", describe(x), describe(small)),
                     [=] { kernels::grouped_gemm(grams, {.product = 2.0, .identity = 1.0}); }});
    const kernels::GroupedProduct left{{}, {}, Out(gram), ones(gram.shape(), dtype)};
    cases.push_back(
        {"combine of " + describe(gram), [=] { kernels::cuda::combine(left, {.product = 2.0, .addend = 1.0}); }});
  }
  return cases;
}

std::vector<LintCase> convolutions() {
  std::vector<LintCase> cases;
  struct Layer {
    Shape x;
    std::int64_t outputs, stride, groups;
    kernels::ConvImpl impl;
  };
  using enum kernels::ConvImpl;
  for (const DType dtype : {DType::f32, DType::f16}) {
    for (const Layer& layer : {Layer{{2, 3, 16, 16}, 64, 1, 1, fused}, Layer{{2, 64, 8, 8}, 64, 1, 1, fused},
                               Layer{{1, 64, 8, 8}, 128, 2, 1, fused}, Layer{{1, 32, 4, 4}, 32, 1, 1, reference},
                               Layer{{1, 64, 4, 4}, 64, 1, 64, automatic}}) {
      const kernels::Conv2dOptions options{{layer.stride, layer.stride}, {1, 1}, {1, 1}, layer.groups, layer.impl};
      const Tensor x = ones(layer.x, dtype), grad_x = ones(layer.x, dtype);
      const Tensor w = ones({layer.outputs, layer.x[1] / layer.groups, 3, 3}, dtype), grad_w = ones(w.shape(), dtype);
      const Tensor y = ones(kernels::conv2d_output_shape(x.shape(), w.shape(), options), dtype);
      const Tensor bias = ones({layer.outputs}, dtype), grad_bias = ones({layer.outputs}, dtype);
      const Tensor mask = ones(kernels::conv_mask_shape(y.shape()), DType::u8);
      const auto add_case = [&](const char* op, std::function<void()> work) {
        cases.push_back({fmt::format("{} of {} to {} channels, stride {}, {} groups, {}", op, describe(x),
                                     layer.outputs, layer.stride, layer.groups, kernels::name_of(layer.impl)),
                         std::move(work)});
      };
      add_case("apply_mask", [=] { kernels::cuda::apply_mask(y, mask, Out(empty_like(y))); });
      add_case("conv_bias_relu", [=] { kernels::conv_bias_relu_forward(x, w, bias, options, Out(y), Out(mask)); });
      add_case("grad_x of conv", [=] {
        kernels::conv_bias_relu_backward(options, {.x = x, .w = w, .mask = mask, .grad_y = y}, {.x = Out(grad_x)});
      });
      add_case("grad_w of conv", [=] {
        kernels::conv_bias_relu_backward(options, {.x = x, .w = w, .mask = mask, .grad_y = y},
                                         {.w = Out(grad_w), .bias = Out(grad_bias)});
      });
    }
  }
  return cases;
}

/// Images with few channels, of f16 on tensor cores; f32 on tensor cores.
std::vector<LintCase> more_on_tensor_cores() {
  namespace gemm = kernels::cuda::implicit_gemm;
  namespace few = kernels::cuda::few_channels;
  std::vector<LintCase> cases;
  const kernels::Conv2dOptions options{{1, 1}, {1, 1}, {1, 1}, 1, kernels::ConvImpl::fused};
  for (const Shape& shape : {Shape{1, 3, 32, 32}, Shape{1, 1, 28, 28}, Shape{1, 4, 16, 16}}) {
    const Tensor x = ones(shape, DType::f16), w = ones({64, shape[1], 3, 3}, DType::f16),
                 grad_w = ones(w.shape(), DType::f16);
    const Tensor y = ones(kernels::conv2d_output_shape(x.shape(), w.shape(), options), DType::f16);
    const Tensor bias = ones({64}, DType::f16), mask = ones(kernels::conv_mask_shape(y.shape()), DType::u8);
    const kernels::ConvGeometry g = kernels::make_geometry(x.shape(), w.shape(), options);
    cases.push_back({fmt::format("conv_bias_relu of few channels, {}", describe(x)),
                     [=] { few::forward(g, x, w, {bias, true, Out(mask)}, Out(y)); }});
    cases.push_back({fmt::format("grad_w of few channels, {}", describe(x)),
                     [=] { few::backward_weight_and_bias(g, x, y, mask, Out(grad_w), Out(bias)); }});
  }
  const Tensor x = ones({2, 64, 8, 8}, DType::f32), w = ones({64, 64, 3, 3}, DType::f32),
               grad_w = ones(w.shape(), DType::f32);
  const Tensor y = ones(x.shape(), DType::f32), bias = ones({64}, DType::f32), grad_x = ones(x.shape(), DType::f32);
  const Tensor mask = ones(kernels::conv_mask_shape(y.shape()), DType::u8);
  const kernels::ConvGeometry g = kernels::make_geometry(x.shape(), w.shape(), options);
  for (const gemm::Tile tile : {gemm::Tile::wide, gemm::Tile::tall, gemm::Tile::small, gemm::Tile::narrow}) {
    const auto add_case = [&](const char* pass, std::function<void()> work) {
      cases.push_back({fmt::format("{} of {} as tf32, tile {}", pass, describe(x), static_cast<int>(tile)), [=] {
                         const kernels::Float32ProductsScope scope(kernels::Float32Products::tf32);
                         work();
                       }});
    };
    add_case("conv_bias_relu", [=] { gemm::forward_by(tile, g, x, w, {bias, true, Out(mask)}, Out(y)); });
    add_case("grad_x of conv", [=] { gemm::backward_input_by(tile, g, y, {}, w, {mask, Out(bias)}, Out(grad_x)); });
    if (tile != gemm::Tile::wide && tile != gemm::Tile::small) continue;
    add_case("grad_w of conv", [=] { gemm::backward_weight_by({tile, 1, 4}, g, x, y, {}, Out(grad_w)); });
    add_case("grad_w in parts of conv", [=] { gemm::backward_weight_by({tile, 2, 2}, g, x, y, {}, Out(grad_w)); });
  }
  return cases;
}

/// Every tile of the tensor-core kernels, on channels that fill it and on some that do not.
std::vector<LintCase> tensor_core_convolutions() {
  namespace gemm = kernels::cuda::implicit_gemm;
  std::vector<LintCase> cases;
  for (const std::int64_t channels : {64, 40}) {
    const kernels::Conv2dOptions options{{1, 1}, {1, 1}, {1, 1}, 1, kernels::ConvImpl::fused};
    const Tensor x = ones({2, channels, 8, 8}, DType::f16), grad_x = ones(x.shape(), DType::f16);
    const Tensor w = ones({2 * channels, channels, 3, 3}, DType::f16), grad_w = ones(w.shape(), DType::f16);
    const Tensor y = ones(kernels::conv2d_output_shape(x.shape(), w.shape(), options), DType::f16);
    const Tensor bias = ones({2 * channels}, DType::f16), mask = ones(kernels::conv_mask_shape(y.shape()), DType::u8);
    const Tensor mask_below = ones(kernels::conv_mask_shape(x.shape()), DType::u8), sums = ones({channels}, DType::f16);
    const kernels::ConvGeometry g = kernels::make_geometry(x.shape(), w.shape(), options);
    const auto add_case = [&](const char* pass, gemm::Tile tile, std::function<void()> work) {
      cases.push_back({fmt::format("{} of {} to {} channels on tensor cores, tile {}", pass, describe(x), 2 * channels,
                                   static_cast<int>(tile)),
                       std::move(work)});
    };
    for (const gemm::Tile tile : {gemm::Tile::wide, gemm::Tile::tall, gemm::Tile::small, gemm::Tile::narrow}) {
      add_case("conv_bias_relu", tile, [=] { gemm::forward_by(tile, g, x, w, {bias, true, Out(mask)}, Out(y)); });
      add_case("grad_x of conv", tile,
               [=] { gemm::backward_input_by(tile, g, y, {}, w, {mask_below, Out(sums)}, Out(grad_x)); });
    }
    namespace ladder = kernels::cuda::ladder;
    add_case("ladder: conv", gemm::Tile::small, [=] { ladder::tensor_cores::forward(g, x, w, {bias}, Out(y)); });
    add_case("ladder: grad_x of conv", gemm::Tile::small,
             [=] { ladder::tensor_cores::backward_input(g, y, {}, w, Out(grad_x)); });
    add_case("ladder: grad_w of conv", gemm::Tile::small,
             [=] { ladder::tensor_cores::backward_weight(g, x, y, {}, Out(grad_w)); });
    const Tensor pooled = ones({2, 2 * channels, 4, 4}, DType::f16), positions = ones(pooled.shape(), DType::u8);
    const Tensor pooled_mask = ones(kernels::conv_mask_shape(pooled.shape()), DType::u8);
    for (const gemm::Tile tile : {gemm::Tile::wide, gemm::Tile::tall, gemm::Tile::small, gemm::Tile::narrow}) {
      const Tensor moments = ones({3, gemm::moment_parts_by(tile, g), 2 * channels}, DType::f64, Layout::row_major);
      add_case("conv and moments", tile, [=] { gemm::forward_moments_by(tile, g, x, w, bias, Out(y), Out(moments)); });
    }
    for (const gemm::Tile tile : {gemm::Tile::wide, gemm::Tile::tall, gemm::Tile::small, gemm::Tile::narrow})
      add_case("conv_bias_relu_pool", tile,
               [=] { gemm::forward_pool_by(tile, g, x, w, bias, {Out(pooled), Out(positions), Out(pooled_mask)}); });
    for (const gemm::Tile tile : {gemm::Tile::wide, gemm::Tile::tall, gemm::Tile::small, gemm::Tile::narrow}) {
      const Tensor moments =
          ones({3, gemm::pool_moment_parts_by(tile, g), 2 * channels}, DType::f64, Layout::row_major);
      add_case("conv, pool and moments", tile, [=] {
        gemm::forward_pool_moments_by(tile, g, x, w, bias, {Out(pooled), Out(positions), Out(moments)});
      });
    }
    if (channels == 64) {
      add_case("ladder: conv", gemm::Tile::small, [=] { ladder::shared_tile::forward(g, x, w, {bias}, Out(y)); });
      add_case("ladder: grad_x of conv", gemm::Tile::small,
               [=] { ladder::shared_tile::backward_input(g, y, mask, w, Out(grad_x)); });
      add_case("ladder: grad_w of conv", gemm::Tile::small,
               [=] { ladder::shared_tile::backward_weight(g, x, y, mask, Out(grad_w)); });
    }
    for (const gemm::Tile tile : {gemm::Tile::wide, gemm::Tile::small}) {
      add_case("grad_w of conv", tile, [=] { gemm::backward_weight_by({tile, 1, 2}, g, x, y, {}, Out(grad_w)); });
      add_case("grad_w in parts of conv", tile,
               [=] { gemm::backward_weight_by({tile, 2, 1}, g, x, y, {}, Out(grad_w)); });
    }
  }
  return cases;
}

/// Weights that stay in shared memory: channels that fill a shape of block and some that do not.
std::vector<LintCase> stationary_convolutions() {
  namespace stationary = kernels::cuda::stationary;
  std::vector<LintCase> cases;
  const kernels::Conv2dOptions options{{1, 1}, {1, 1}, {1, 1}, 1, kernels::ConvImpl::fused};
  for (const auto& [channels, outputs] : {std::pair{64, 64}, {32, 32}, {32, 64}, {64, 32}, {40, 24}, {128, 128}}) {
    const Tensor x = ones({2, channels, 16, 16}, DType::f16), y = ones({2, outputs, 16, 16}, DType::f16);
    const Tensor w = ones({outputs, channels, 3, 3}, DType::f16), bias = ones({outputs}, DType::f16);
    const Tensor mask = ones(kernels::conv_mask_shape(y.shape()), DType::u8);
    const Tensor mask_below = ones(kernels::conv_mask_shape(x.shape()), DType::u8), sums = ones({channels}, DType::f16);
    const Tensor pooled = ones({2, outputs, 8, 8}, DType::f16), positions = ones(pooled.shape(), DType::u8);
    const Tensor pooled_mask = ones(kernels::conv_mask_shape(pooled.shape()), DType::u8);
    const kernels::ConvGeometry g = kernels::make_geometry(x.shape(), w.shape(), options);
    const auto add_case = [&](const char* pass, std::function<void()> work) {
      cases.push_back(
          {fmt::format("{} of {} to {} channels, stationary weights", pass, describe(x), outputs), std::move(work)});
    };
    add_case("conv_bias_relu", [=] { stationary::forward(g, x, w, {bias, true, Out(mask)}, Out(y)); });
    add_case("conv_bias_relu_pool",
             [=] { stationary::forward_pool(g, x, w, bias, {Out(pooled), Out(positions), Out(pooled_mask)}); });
    if (channels <= 64 && outputs <= 64) {
      const Tensor grad_w = ones(w.shape(), DType::f16);
      add_case("grad_w of conv", [=] { stationary::backward_weight(g, x, y, {}, Out(grad_w)); });
    }
    const Tensor moments = ones({3, stationary::moment_parts(g), outputs}, DType::f64, Layout::row_major);
    add_case("conv and moments", [=] { stationary::forward_moments(g, x, w, bias, Out(y), Out(moments)); });
    const Tensor pool_moments = ones({3, stationary::pool_moment_parts(g), outputs}, DType::f64, Layout::row_major);
    add_case("conv, pool and moments", [=] {
      stationary::forward_pool_moments(g, x, w, bias, {Out(pooled), Out(positions), Out(pool_moments)});
    });
    add_case("grad_x of conv", [=] { stationary::backward_input_below(g, y, {}, w, {mask_below, Out(sums)}, Out(x)); });
  }
  return cases;
}

/// Warpgroups: narrow and wide blocks, channels that fill lines of 64 and some that do not.
std::vector<LintCase> warpgroup_convolutions() {
  namespace warpgroup = kernels::cuda::warpgroup;
  std::vector<LintCase> cases;
  const kernels::Conv2dOptions options{{1, 1}, {1, 1}, {1, 1}, 1, kernels::ConvImpl::warpgroup};
  for (const auto& [channels, outputs] : {std::pair{64, 128}, {256, 256}, {72, 200}}) {
    const Tensor x = ones({2, channels, 8, 8}, DType::f16), y = ones({2, outputs, 8, 8}, DType::f16);
    const Tensor w = ones({outputs, channels, 3, 3}, DType::f16), bias = ones({outputs}, DType::f16);
    const Tensor mask = ones(kernels::conv_mask_shape(y.shape()), DType::u8), grad_w = ones(w.shape(), DType::f16);
    const Tensor mask_below = ones(kernels::conv_mask_shape(x.shape()), DType::u8), sums = ones({channels}, DType::f16);
    const kernels::ConvGeometry g = kernels::make_geometry(x.shape(), w.shape(), options);
    const auto add_case = [&](const char* pass, std::function<void()> work) {
      cases.push_back(
          {fmt::format("{} of {} to {} channels, warpgroups", pass, describe(x), outputs), std::move(work)});
    };
    add_case("conv_bias_relu", [=] { warpgroup::forward(g, x, w, {bias, true, Out(mask)}, Out(y)); });
    add_case("grad_x of conv", [=] { warpgroup::backward_input_below(g, y, {}, w, {mask_below, Out(sums)}, Out(x)); });
    add_case("grad_w of conv", [=] { warpgroup::backward_weight(g, x, y, {}, Out(grad_w)); });
  }
  return cases;
}

const RegisterLint register_products("products", products), register_batched("batched products", batched_products),
    register_grouped("grouped products", grouped_products), register_convolutions("convolutions", convolutions),
    register_tensor_core_convolutions("tensor core convolutions", tensor_core_convolutions),
    register_more_on_tensor_cores("more on tensor cores", more_on_tensor_cores),
    register_stationary_convolutions("stationary convolutions", stationary_convolutions),
    register_warpgroup_convolutions("warpgroup convolutions", warpgroup_convolutions);

}  // namespace

}  // namespace tandem::test

// Fused convolutions one above the other, where the kernels of one do the work of the layer below it.
#include "tandem/autograd/functions.h"
#include "tandem/autograd/variable.h"
#include "tandem/core/memory.h"
#include "tandem/core/out.h"
#include "tandem/kernels/conv/conv.h"
#include "tandem/kernels/float32_products.h"
#include "tandem/kernels/pool/pool2d_options.h"
#include "tests/support/catch.h"
#include "tests/support/cuda_device.h"

#include <limits>
#include <random>

namespace tandem::test {
namespace {

using namespace autograd;

/// Whole numbers from -2 to 2: their sums in f32 are exact, in whatever order.
Tensor small_integers(const Shape& shape, DType dtype, unsigned seed) {
  std::mt19937 generator(seed);
  const Layout layout = shape.rank() == 4 ? Layout::channels_last : Layout::row_major;
  const Tensor numbers = Tensor::empty(shape, {.layout = layout});
  for (std::int64_t i = 0; i < numbers.numel(); ++i)
    Out(numbers).data<float>()[i] = static_cast<float>(static_cast<int>(generator() % 5) - 2);
  return cast(numbers, dtype).to(kGpu);
}

struct Form {
  bool apart;   // an operation between the layers, so that each works for itself
  bool shared;  // the first layer's result is used twice
  bool has_bias;
};

struct Gradients {
  std::vector<std::vector<float>> values;  // of x, then of each layer's weight and bias
  std::int64_t peak_bytes;                 // of the backward pass, beyond what was there before
};

Gradients measured_gradients(const Tensor& loss, const std::vector<Tensor>& leaves) {
  reset_peak_memory();
  const std::int64_t before = memory_stats(kGpu).current_total;
  backward(loss);
  Gradients result{{}, memory_stats(kGpu).peak_total - before};
  for (const Tensor& leaf : leaves) result.values.push_back(grad(leaf).to(Device{}).to_vector<float>());
  return result;
}

/// The gradients of three layers, the last with a stride.
Gradients gradients_of(const Form& form, DType dtype) {
  constexpr std::int64_t kChannels[] = {8, 24, 16, 8};
  std::vector<Tensor> leaves{set_requires_grad(small_integers({2, 8, 10, 9}, dtype, 1))};
  Tensor y = leaves.front(), first;
  for (unsigned layer = 0; layer < 3; ++layer) {
    const Tensor weight =
        set_requires_grad(small_integers({kChannels[layer + 1], kChannels[layer], 3, 3}, dtype, 2 + layer));
    leaves.push_back(weight);
    Tensor bias;
    if (form.has_bias) {
      bias = set_requires_grad(small_integers({kChannels[layer + 1]}, dtype, 10 + layer));
      leaves.push_back(bias);
    }
    const std::int64_t stride = layer == 2 ? 4 : 1;
    const Conv2dOptions options{.stride = {stride, stride}, .padding = {1, 1}, .impl = kernels::ConvImpl::fused};
    y = conv_bias_relu(y, weight, bias, options);
    if (form.apart) y = permute(y, {0, 1, 2, 3});
    if (layer == 0) first = y;
  }
  Tensor loss = sum(y);
  if (form.shared) loss = add(loss, sum(first));
  first = y = {};
  return measured_gradients(loss, leaves);
}

/// The outputs and gradients of two pooled convolutions without ReLU, of maps whose last row or column is left out:
/// fused, or by two functions each.
std::vector<std::vector<float>> pooled_without_relu(bool fused, bool has_bias, const Tensor& images) {
  const DType dtype = images.dtype();
  std::vector<Tensor> leaves{set_requires_grad(images.clone())};
  Tensor y = leaves.front();
  std::vector<std::vector<float>> all;
  for (unsigned layer = 0; layer < 2; ++layer) {
    const std::int64_t in = layer == 0 ? 8 : 24, out = layer == 0 ? 24 : 16;
    const Tensor weight = set_requires_grad(small_integers({out, in, 3, 3}, dtype, 2 + layer));
    const Tensor bias = has_bias ? set_requires_grad(small_integers({out}, dtype, 10 + layer)) : Tensor();
    leaves.push_back(weight);
    if (has_bias) leaves.push_back(bias);
    const Conv2dOptions options{.padding = {1, 1}, .impl = kernels::ConvImpl::fused};
    y = fused ? conv2d_pool(y, weight, bias, options)
              : max_pool2d(conv2d(y, weight, bias, options), {.kernel = {2, 2}, .stride = {2, 2}});
    all.push_back(y.detach().to(Device{}).to_vector<float>());
  }
  // Gradients that are whole numbers, other ones for each output.
  backward(sum(mul(y, small_integers(y.shape(), dtype, 20))));
  for (const Tensor& leaf : leaves) all.push_back(grad(leaf).to(Device{}).to_vector<float>());
  return all;
}

struct PooledForm {
  bool shared;      // the first layer's result is used twice
  unsigned layers;  // of three: two that are pooled, and one above them
};

Gradients pooled_gradients_of(bool fused, const PooledForm& form, DType dtype) {
  constexpr std::int64_t kChannels[] = {8, 24, 16, 8};
  const kernels::Pool2dOptions windows{.kernel = {2, 2}, .stride = {2, 2}};
  std::vector<Tensor> leaves{set_requires_grad(small_integers({2, 8, 13, 12}, dtype, 1))};
  Tensor y = leaves.front(), first;
  for (unsigned layer = 0; layer < form.layers; ++layer) {
    leaves.push_back(
        set_requires_grad(small_integers({kChannels[layer + 1], kChannels[layer], 3, 3}, dtype, 2 + layer)));
    leaves.push_back(set_requires_grad(small_integers({kChannels[layer + 1]}, dtype, 10 + layer)));
    const Tensor weight = leaves[leaves.size() - 2], bias = leaves.back();
    const Conv2dOptions options{.padding = {1, 1}, .impl = kernels::ConvImpl::fused};
    if (layer == 2) {
      y = conv_bias_relu(y, weight, bias, options);
    } else if (fused) {
      y = conv_bias_relu_pool(y, weight, bias, options);
    } else {
      y = permute(max_pool2d(permute(conv_bias_relu(y, weight, bias, options), {0, 1, 2, 3}), windows), {0, 1, 2, 3});
    }
    if (layer == 0) first = y;
  }
  Tensor loss = sum(y);
  if (form.shared) loss = add(loss, sum(first));
  first = y = {};
  return measured_gradients(loss, leaves);
}

}  // namespace

TEST_CASE("a fused convolution does the work of the fused one below it", "[cuda]") {
  if (!has_gpu()) return;
  for (const DType dtype : {DType::f16, DType::bf16, DType::f32}) {
    for (const bool has_bias : {true, false}) {
      for (const bool shared : {false, true}) {
        INFO(name_of(dtype) << (has_bias ? ", bias" : ", no bias") << (shared ? ", shared" : ""));
        const Gradients chained = gradients_of({.apart = false, .shared = shared, .has_bias = has_bias}, dtype);
        const Gradients apart = gradients_of({.apart = true, .shared = shared, .has_bias = has_bias}, dtype);
        CHECK(chained.values == apart.values);
        // On tensor cores the chain spares the masked copy of the second layer's gradient.
        if (shared) continue;
        if (dtype == DType::f32) {
          CHECK(chained.peak_bytes == apart.peak_bytes);
        } else {
          CHECK(chained.peak_bytes < apart.peak_bytes);
        }
      }
    }
  }
}

TEST_CASE("a convolution that pools without ReLU has the gradients of the two operations", "[cuda]") {
  if (!has_gpu()) return;
  for (const auto products : {kernels::Float32Products::full, kernels::Float32Products::tf32}) {
    const kernels::Float32ProductsScope scope(products);
    for (const DType dtype : {DType::f16, DType::bf16, DType::f32}) {
      for (const bool has_bias : {true, false}) {
        for (const Shape& shape : {Shape{2, 8, 15, 14}, {2, 8, 12, 13}}) {
          INFO(name_of(dtype) << (has_bias ? ", bias" : ", no bias") << " of " << to_string(shape));
          const Tensor images = small_integers(shape, dtype, 1);
          CHECK(pooled_without_relu(true, has_bias, images) == pooled_without_relu(false, has_bias, images));
        }
      }
    }
  }
}

TEST_CASE("a convolution pools apart what lies at an odd address, to the same numbers", "[cuda]") {
  if (!has_gpu()) return;
  const Tensor images = small_integers({2, 8, 7, 6}, DType::f16, 1);
  const Tensor memory = Tensor::zeros({images.numel() + 1}, images.options(Layout::row_major));
  const Tensor odd = memory.as_strided(images.shape(), images.strides(), 1);
  odd.copy_from(images);
  const Tensor weight = small_integers({16, 8, 3, 3}, DType::f16, 2);
  const auto result = [&](const Tensor& from) {
    const Tensor x = set_requires_grad(from.detach()), w = set_requires_grad(weight.detach());
    const ConvWithMoments pooled = conv2d_pool_with_moments(x, w, {}, {.padding = 1, .impl = kernels::ConvImpl::fused});
    CHECK(pooled.moments.defined() == (&from == &images));
    backward(pooled.y, small_integers(pooled.y.shape(), DType::f16, 3));
    return std::vector{pooled.y.detach().to(Device{}).to_vector<float>(), grad(x).to(Device{}).to_vector<float>(),
                       grad(w).to(Device{}).to_vector<float>()};
  };
  CHECK(result(images) == result(odd));
}

TEST_CASE("a convolution that pools passes the gradient to the first of equals and to the last NaN", "[cuda]") {
  if (!has_gpu()) return;
  // Copies its input: the gradient of x is that of the pool.
  const Tensor weight = Tensor::zeros({8, 8, 1, 1}, {.layout = Layout::channels_last});
  for (std::int64_t i = 0; i < 8; ++i) Out(weight).data<float>()[i * 9] = 1.0f;
  const Tensor filters = cast(weight, DType::f16).to(kGpu);
  const Tensor values = Tensor::full({2, 8, 5, 5}, 1.0, {.layout = Layout::channels_last});
  for (const std::int64_t pixel : {1, 5, 32, 36}) {  // two of one window; and two others
    for (std::int64_t channel = 0; channel < 8; ++channel)
      Out(values).data<float>()[pixel * 8 + channel] = std::numeric_limits<float>::quiet_NaN();
  }
  const auto gradient = [&](bool fused) {
    const Tensor x = set_requires_grad(cast(values, DType::f16).to(kGpu));
    const Conv2dOptions options{.impl = kernels::ConvImpl::fused};
    const Tensor y = fused ? conv2d_pool(x, filters, {}, options)
                           : max_pool2d(conv2d(x, filters, {}, options), {.kernel = {2, 2}, .stride = {2, 2}});
    backward(y, small_integers(y.shape(), DType::f16, 3));
    return grad(x).to(Device{}).to_vector<float>();
  };
  CHECK(gradient(true) == gradient(false));
}

TEST_CASE("a convolution that pools on its way out has the gradients of the three operations", "[cuda]") {
  if (!has_gpu()) return;
  for (const DType dtype : {DType::f16, DType::bf16, DType::f32}) {
    for (const PooledForm& form : {PooledForm{false, 3}, {true, 3}, {false, 2}}) {
      INFO(name_of(dtype) << ", " << form.layers << " layers" << (form.shared ? ", shared" : ""));
      CHECK(pooled_gradients_of(true, form, dtype).values == pooled_gradients_of(false, form, dtype).values);
    }
  }
}

}  // namespace tandem::test

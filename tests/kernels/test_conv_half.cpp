// Convolution of half types on the CPU: the same sums as in f32, rounded once, and masks of what is stored.
#include "tandem/core/out.h"
#include "tandem/kernels/conv/families.h"
#include "tests/kernels/conv_support.h"
#include "tests/kernels/image_support.h"

namespace tandem::test {
namespace {

namespace k = tandem::kernels;

struct Results {
  Tensor y, grad_x, grad_w, grad_bias, mask;
};

Tensor bits_like(const Shape& y, unsigned seed) {
  std::mt19937 generator(seed);
  const Tensor mask = Tensor::empty(k::conv_mask_shape(y), {.dtype = DType::u8});
  for (std::int64_t i = 0; i < mask.numel(); ++i)
    Out(mask).data<std::uint8_t>()[i] = static_cast<std::uint8_t>(generator() & 0xff);
  return mask;
}

Tensor sign_mask_of(const Tensor& y) {
  const Tensor mask = Tensor::empty(k::conv_mask_shape(y.shape()), {.dtype = DType::u8});
  k::reference::sign_mask(y, Out(mask));
  return mask;
}

template <typename T>
using Implementation = k::cpu::ConvFamily<T>;

/// The family of this name for images of T.
template <typename T>
const Implementation<T>& family(std::string_view name) {
  for (const Implementation<T>& one : k::cpu::conv_families<T>())
    if (one.name == name) return one;
  fail("no family {}", name);
}

/// All passes over images of T; weights are floats.
template <typename T>
Results run(const Implementation<T>& impl, const ConvCase& one, const Tensor& x, const Tensor& w, const Tensor& bias,
            const Tensor& grad_y, const Tensor& used_mask) {
  const k::ConvGeometry g = one.geometry();
  const PoisonScope poison;
  Results out{Tensor::empty(one.y(), channels_last(dtype_of<T>)), Tensor::empty(one.x(), channels_last(dtype_of<T>)),
              Tensor::empty(one.weight(), channels_last()), Tensor::empty({one.k}),
              Tensor::empty(k::conv_mask_shape(one.y()), {.dtype = DType::u8})};
  impl.forward(g, x.data<T>(), w.data<float>(),
               {.bias = bias.data<float>(), .relu = true, .mask = Out(out.mask).data<std::uint8_t>()},
               Out(out.y).data<T>());
  const std::uint8_t* bits = used_mask.defined() ? used_mask.data<std::uint8_t>() : nullptr;
  impl.backward_input(g, {grad_y.data<T>(), bits}, w.data<float>(), Out(out.grad_x).data<T>());
  impl.backward_weight(g, x.data<T>(), {grad_y.data<T>(), bits}, Out(out.grad_w).data<float>(),
                       Out(out.grad_bias).data<float>());
  return out;
}

/// Half storage must give the bits of f32 storage of the same numbers, rounded.
template <typename T>
void check_against_f32(const Implementation<T>& half, const Implementation<float>& full, const ConvCase& one,
                       bool masked_gradient) {
  constexpr DType kDType = dtype_of<T>;
  INFO(half.name << " " << name_of(kDType) << (masked_gradient ? " masked " : " ") << one.text());
  const Tensor x = in_dtype(normals(one.x(), 1), kDType), grad_y = in_dtype(normals(one.y(), 4), kDType);
  const Tensor w = in_dtype(in_dtype(normals(one.weight(), 2), kDType), DType::f32), bias = normals({one.k}, 3);
  const Tensor mask = masked_gradient ? bits_like(one.y(), 5) : Tensor();
  const Results got = run(half, one, x, w, bias, grad_y, mask);
  const Results expected = run(full, one, in_dtype(x, DType::f32), w, bias, in_dtype(grad_y, DType::f32), mask);
  CHECK(same_bits(got.y, in_dtype(expected.y, kDType)));
  CHECK(same_bits(got.grad_x, in_dtype(expected.grad_x, kDType)));
  CHECK(same_bits(got.grad_w, expected.grad_w));
  CHECK(same_bits(got.grad_bias, expected.grad_bias));
  CHECK(same_bits(got.mask, sign_mask_of(got.y)));
}

template <typename T>
void check_all_cases() {
  for (const bool masked_gradient : {true, false}) {
    for (const Implementation<T>& half : k::cpu::conv_families<T>())
      for (const ConvCase& one : half.name == "winograd" ? winograd_cases() : direct_cases())
        if (half.supports(one.geometry())) check_against_f32(half, family<float>(half.name), one, masked_gradient);
  }
}

/// A convolution whose output is the product of two numbers: element (0, 0, 0, 0) of x times the first weight.
template <typename T>
void check_tiny(const Implementation<T>& impl, const ConvCase& one, float a, float b) {
  INFO(impl.name << " " << name_of(dtype_of<T>) << " " << one.text() << ": " << a << " * " << b);
  const Tensor x = Tensor::full(one.x(), static_cast<double>(a), channels_last(dtype_of<T>));
  const Tensor w = Tensor::zeros(one.weight(), channels_last()), bias = Tensor::zeros({one.k});
  // The centre of each kernel, for the first input channel.
  const std::int64_t taps = one.r * one.s, channels = one.c / one.options.groups;
  for (std::int64_t out = 0; out < one.k; ++out) Out(w).data<float>()[(out * taps + taps / 2) * channels] = b;
  const Results got = run(impl, one, x, w, bias, Tensor::zeros(one.y(), channels_last(dtype_of<T>)), {});
  CHECK(same_bits(got.mask, sign_mask_of(got.y)));
}

}  // namespace

TEST_CASE("f16 convolutions on the CPU are the f32 ones, rounded once", "[half]") { check_all_cases<Half>(); }

TEST_CASE("bf16 convolutions on the CPU are the f32 ones, rounded once", "[half]") { check_all_cases<BFloat16>(); }

TEST_CASE("a positive result that is stored as 0 is not in the mask", "[half]") {
  // 2^-25 is rounded to 0 in f16, and 2^-134 in bf16; half as much again is not.
  for (const float factor : {0.5f, 1.0f, 1.5f, 2.0f}) {
    for (const std::int64_t outputs : {5, 32}) {  // without and with rows of whole bytes
      const ConvCase winograd = square_case(1, 16, 2, 2, outputs, 3, 1),
                     direct = square_case(2, 3, 4, 5, outputs, 3, 1);
      const ConvCase depthwise = square_case(1, outputs, 3, 4, outputs, 3, 1, 1, 1, outputs);
      check_tiny(family<Half>("winograd"), winograd, 0x1p-12f, factor * 0x1p-13f);
      check_tiny(family<Half>("direct"), direct, 0x1p-12f, factor * 0x1p-13f);
      check_tiny(family<Half>("direct"), depthwise, 0x1p-12f, factor * 0x1p-13f);
      check_tiny(family<BFloat16>("winograd"), winograd, 0x1p-67f, factor * 0x1p-67f);
      check_tiny(family<BFloat16>("direct"), direct, 0x1p-67f, factor * 0x1p-67f);
      check_tiny(family<BFloat16>("direct"), depthwise, 0x1p-67f, factor * 0x1p-67f);
    }
  }
}

TEST_CASE("half convolutions on the CPU do not depend on the number of threads", "[half]") {
  for (const ConvCase& one : {square_case(20, 16, 8, 8, 33, 3, 1), square_case(3, 3, 16, 16, 32, 3, 1),
                              square_case(5, 8, 9, 9, 12, 3, 1, 2), square_case(2, 32, 7, 6, 32, 3, 1, 1, 1, 32)}) {
    INFO(one.text());
    const auto in_threads = [&](int threads) {
      const ThreadScope scope(threads);
      const Tensor x = in_dtype(normals(one.x(), 1), DType::f16), w = in_dtype(normals(one.weight(), 2), DType::f16);
      const Tensor grad_y = in_dtype(normals(one.y(), 4), DType::f16), mask = bits_like(one.y(), 5);
      const TensorOptions options = channels_last(DType::f16);
      const PoisonScope poison;
      Results out{Tensor::empty(one.y(), options), Tensor::empty(one.x(), options),
                  Tensor::empty(one.weight(), options), Tensor::empty({one.k}, options),
                  Tensor::empty(mask.shape(), mask.options())};
      k::conv_bias_relu_forward(x, w, {}, one.options, Out(out.y), Out(out.mask));
      k::conv_bias_relu_backward(one.options, {.x = x, .w = w, .mask = mask, .grad_y = grad_y},
                                 {.x = Out(out.grad_x), .w = Out(out.grad_w), .bias = Out(out.grad_bias)});
      return out;
    };
    const Results single = in_threads(1), several = in_threads(3);
    CHECK(same_bits(single.y, several.y));
    CHECK(same_bits(single.mask, several.mask));
    CHECK(same_bits(single.grad_x, several.grad_x));
    CHECK(same_bits(single.grad_w, several.grad_w));
    CHECK(same_bits(single.grad_bias, several.grad_bias));
  }
}

}  // namespace tandem::test

// Convolution entry points: shapes, dtypes, empty batches, fused against separate passes, errors.
#include "tandem/core/out.h"
#include "tandem/kernels/conv/cudnn/conv_library.h"
#include "tandem/kernels/conv/plan.h"
#include "tests/kernels/conv_support.h"
#include "tests/kernels/image_support.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"

namespace tandem::test {

namespace k = tandem::kernels;

TEST_CASE("conv2d_output_shape counts windows") {
  CHECK(square_case(2, 3, 32, 32, 8, 3, 1).y() == Shape{2, 8, 32, 32});
  CHECK(square_case(2, 3, 9, 8, 8, 3, 1, 2).y() == Shape{2, 8, 5, 4});
  CHECK(square_case(2, 3, 9, 8, 8, 3, 0, 1, 2).y() == Shape{2, 8, 5, 4});
  CHECK(square_case(0, 3, 9, 8, 8, 3, 0).y() == Shape{0, 8, 7, 6});
  CHECK(k::conv_mask_shape({2, 3, 1, 2}) == Shape{2});
}

TEST_CASE("conv2d_output_shape refuses what is no convolution") {
  const auto message = [](const ConvCase& one) {
    try {
      one.y();
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK_THAT(message(square_case(1, 3, 2, 8, 4, 5, 1)), ContainsText("spans 5 in height"));
  CHECK_THAT(message(square_case(1, 3, 8, 8, 4, 3, 1, 0)), ContainsText("stride and dilation"));
  CHECK_THAT(message(square_case(1, 3, 8, 8, 4, 3, 1, 1, 1, 2)), ContainsText("channels do not fit"));
  CHECK_THAT(message(square_case(1, 3, 8, 8, 4, 0, 1)), ContainsText("empty"));
  CHECK_THROWS_AS(k::conv2d_output_shape({3, 8, 8}, {4, 3, 3, 3}, {}), Error);
}

TEST_CASE("implementations have names") {
  for (const auto impl : {k::ConvImpl::automatic, k::ConvImpl::reference, k::ConvImpl::fused, k::ConvImpl::onednn,
                          k::ConvImpl::cudnn, k::ConvImpl::warpgroup, k::ConvImpl::direct, k::ConvImpl::winograd})
    CHECK(k::parse_conv_impl(k::name_of(impl)) == impl);
  CHECK(k::name_of(k::ConvImpl::cudnn) == "cudnn");
  CHECK_THROWS_AS(k::parse_conv_impl("fast"), Error);
}

TEST_CASE("what runs on the CPU alone is refused on a GPU") {
  const Device gpu{DeviceType::cuda, 0};
  CHECK(k::obstacle(k::ConvImpl::direct, gpu) == "'direct' is code for the CPU; choose auto or fused");
  CHECK(k::obstacle(k::ConvImpl::winograd, gpu) == "'winograd' is code for the CPU; choose auto or fused");
  CHECK(k::obstacle(k::ConvImpl::direct, Device{}) == "");
  CHECK(k::obstacle(k::ConvImpl::winograd, Device{}) == "");
}

TEST_CASE("cuDNN is refused on the CPU") {
  const Tensor x = Tensor::zeros({1, 1, 2, 2}, channels_last());
  const k::Conv2dOptions options{.padding = {1, 1}, .impl = k::ConvImpl::cudnn};
  const std::string expected = "cuDNN runs on GPUs, not on the CPU; choose auto, fused or onednn";
  const Tensor w = Tensor::zeros({1, 1, 3, 3}, channels_last()),
               mask = Tensor::empty({1}, {DType::u8, Layout::row_major, {}});
  CHECK(error_of([&] { k::conv2d_forward(x, w, {}, options, Out(x.clone())); }) == "conv2d_forward: " + expected);
  CHECK(error_of([&] { k::conv2d_backward_input(x, w, options, Out(x.clone())); }) ==
        "conv2d_backward_input: " + expected);
  CHECK(error_of([&] { k::conv2d_backward_weight(x, x, options, Out(w)); }) == "conv2d_backward_weight: " + expected);
  CHECK(error_of([&] { k::conv_bias_relu_forward(x, w, {}, options, Out(x.clone()), Out(mask)); }) ==
        "conv_bias_relu_forward: " + expected);
}

TEST_CASE("the fused convolution equals its parts") {
  for (const auto impl : {k::ConvImpl::automatic, k::ConvImpl::reference, k::ConvImpl::fused}) {
    for (ConvCase one :
         {square_case(2, 16, 6, 6, 32, 3, 1), square_case(2, 3, 5, 5, 7, 3, 1), square_case(2, 8, 9, 9, 16, 3, 1, 2)}) {
      one.options.impl = impl;
      INFO(k::name_of(impl) << ": " << one.text());
      const Tensor x = normals(one.x(), 1), w = normals(one.weight(), 2), bias = normals({one.k}, 3);
      const Tensor grad_y = normals(one.y(), 4), y = poisoned(one.y()), plain = poisoned(one.y());
      const Tensor mask = Tensor::empty(k::conv_mask_shape(one.y()), {DType::u8, Layout::row_major, {}});
      k::conv2d_forward(x, w, bias, one.options, Out(plain));
      k::conv_bias_relu_forward(x, w, bias, one.options, Out(y), Out(mask));
      CHECK(equal(y, filled(one.y(), [&, i = 0]() mutable { return std::max(plain.data<float>()[i++], 0.0f); })));

      const Tensor gradient = masked(grad_y, mask);
      const Tensor gx = poisoned(one.x()), gw = poisoned(one.weight()), gb = poisoned({one.k});
      const Tensor gx2 = poisoned(one.x()), gw2 = poisoned(one.weight()), gb2 = poisoned({one.k});
      k::conv_bias_relu_backward(one.options, {.x = x, .w = w, .mask = mask, .grad_y = grad_y},
                                 {.x = Out(gx), .w = Out(gw), .bias = Out(gb)});
      k::conv2d_backward_input(gradient, w, one.options, Out(gx2));
      k::conv2d_backward_weight(x, gradient, one.options, Out(gw2));
      k::conv2d_backward_bias(gradient, Out(gb2));
      CHECK(equal(gx, gx2));
      CHECK(equal(gw, gw2));
      CHECK(error_in_eps(gb, gb2, Tensor::full({one.k}, 100.0)) <= 2.0);

      const Tensor only_bias = poisoned({one.k});
      k::conv_bias_relu_backward(one.options, {.x = x, .w = w, .mask = mask, .grad_y = grad_y},
                                 {.bias = Out(only_bias)});
      CHECK(error_in_eps(only_bias, gb2, Tensor::full({one.k}, 100.0)) <= 2.0);
    }
  }
}

TEST_CASE("the gradient for a layer below equals its parts") {
  const ConvCase one = square_case(2, 16, 6, 6, 32, 3, 1);
  const Tensor w = integers(one.weight(), 2), grad_y = integers(one.y(), 4);
  std::mt19937 generator(5);
  const Tensor mask = Tensor::empty(k::conv_mask_shape(one.x()), {DType::u8, Layout::row_major, {}});
  for (std::int64_t i = 0; i < mask.numel(); ++i)
    Out(mask).data<std::uint8_t>()[i] = static_cast<std::uint8_t>(generator());
  for (const DType dtype : {DType::f32, DType::f16, DType::f64}) {
    INFO(name_of(dtype));
    const Tensor own_w = in_dtype(w, dtype), own_grad_y = in_dtype(grad_y, dtype);
    const Tensor plain = Tensor::empty(one.x(), channels_last(dtype)), sums = Tensor::empty({one.c}, {dtype});
    k::conv2d_backward_input(own_grad_y, own_w, one.options, Out(plain));
    const Tensor passed = masked(plain, mask);
    k::conv2d_backward_bias(passed, Out(sums));
    const Tensor open_sums = Tensor::empty({one.c}, {dtype});
    k::conv2d_backward_bias(plain, Out(open_sums), mask);
    CHECK(open_sums.to_vector<double>() == sums.to_vector<double>());

    const Tensor grad_x = Tensor::empty(one.x(), channels_last(dtype)), grad_bias = Tensor::empty({one.c}, {dtype});
    k::conv2d_backward_input(own_grad_y, own_w, one.options, Out(grad_x), {mask, Out(grad_bias)});
    CHECK(grad_x.to_vector<double>() == passed.to_vector<double>());
    CHECK(grad_bias.to_vector<double>() == sums.to_vector<double>());
    k::conv2d_backward_input(own_grad_y, own_w, one.options, Out(grad_x), {{}, {}});
    CHECK(grad_x.to_vector<double>() == plain.to_vector<double>());

    const Tensor x = in_dtype(integers(one.x(), 6), dtype);
    const Tensor again = empty_like(grad_x), again_bias = empty_like(grad_bias);
    const Tensor grad_w = empty_like(own_w), grad_w_alone = empty_like(own_w);
    k::conv_bias_relu_backward(one.options, {.x = x, .w = own_w, .grad_y = own_grad_y},
                               {.x = Out(again), .w = Out(grad_w)}, {mask, Out(again_bias)});
    k::conv2d_backward_weight(x, own_grad_y, one.options, Out(grad_w_alone));
    CHECK(again.to_vector<double>() == passed.to_vector<double>());
    CHECK(again_bias.to_vector<double>() == sums.to_vector<double>());
    CHECK(grad_w.to_vector<double>() == grad_w_alone.to_vector<double>());
    CHECK_FALSE(k::conv_fuses_layer_below(k::plan_conv(x, own_w, one.options, {.grad_x = true}), x, own_w));
  }
  const Tensor x = integers(one.x(), 6);
  CHECK(error_of([&] {
          k::conv_bias_relu_backward(one.options, {.x = x, .w = w, .grad_y = grad_y}, {}, {mask, {}});
        }) == "conv_bias_relu_backward: what the layer below wants needs grad_x");
  const Tensor grad_x = poisoned(one.x());
  CHECK(error_of([&] {
          k::conv2d_backward_input(grad_y, w, one.options, Out(grad_x), {mask, Out(poisoned({3}))});
        }).starts_with("conv2d_backward_input: the grad_bias below should have shape [16]"));
  const Tensor short_mask = Tensor::zeros({5}, {DType::u8, Layout::row_major, {}});
  CHECK(error_of([&] {
          k::conv2d_backward_input(grad_y, w, one.options, Out(grad_x), {short_mask, {}});
        }).starts_with("conv2d_backward_input: the mask below should have shape"));
}

TEST_CASE("convolutions without bias or mask") {
  const ConvCase one = square_case(2, 16, 6, 6, 16, 3, 1);
  const Tensor x = integers(one.x(), 1), w = integers(one.weight(), 2), y = poisoned(one.y());
  const Tensor zero_bias = Tensor::zeros({16}), expected = poisoned(one.y());
  k::conv_bias_relu_forward(x, w, {}, one.options, Out(y), {});
  k::conv_bias_relu_forward(x, w, zero_bias, one.options, Out(expected), {});
  CHECK(equal(y, expected));
}

TEST_CASE("an empty batch gives empty images and zero weight gradients") {
  for (const auto impl : {k::ConvImpl::automatic, k::ConvImpl::fused}) {
    ConvCase one = square_case(0, 16, 6, 6, 16, 3, 1);
    one.options.impl = impl;
    const Tensor x = poisoned(one.x()), w = integers(one.weight(), 2), y = poisoned(one.y());
    const Tensor mask = Tensor::empty(k::conv_mask_shape(one.y()), {DType::u8, Layout::row_major, {}});
    k::conv_bias_relu_forward(x, w, {}, one.options, Out(y), Out(mask));
    const Tensor gw = poisoned(one.weight()), gb = poisoned({16});
    k::conv_bias_relu_backward(one.options, {.x = x, .w = w, .mask = mask, .grad_y = y},
                               {.x = Out(x), .w = Out(gw), .bias = Out(gb)});
    CHECK(equal(gw, Tensor::zeros(one.weight(), channels_last())));
    CHECK(equal(gb, Tensor::zeros({16})));
  }
}

TEST_CASE("convolution of whole numbers is exact in every dtype") {
  const ConvCase one = square_case(2, 4, 5, 6, 3, 3, 1);
  const Tensor x = integers(one.x(), 1), w = integers(one.weight(), 2), bias = integers({one.k}, 3);
  const Tensor expected = poisoned(one.y());
  k::conv2d_forward(x, w, bias, one.options, Out(expected));
  for (const DType dtype : {DType::f64, DType::f16, DType::bf16}) {
    INFO(name_of(dtype));
    const Tensor y = Tensor::empty(one.y(), channels_last(dtype));
    k::conv2d_forward(in_dtype(x, dtype), in_dtype(w, dtype), in_dtype(bias, dtype), one.options, Out(y));
    const std::vector<float> got = y.to_vector<float>(), values = in_dtype(expected, dtype).to_vector<float>();
    CHECK(got == values);
  }
}

TEST_CASE("convolution refuses wrong tensors") {
  const ConvCase one = square_case(2, 4, 5, 6, 3, 3, 1);
  const Tensor x = integers(one.x(), 1), w = integers(one.weight(), 2), y = poisoned(one.y());
  const auto message = [&](const Tensor& image, const Tensor& weight, const Tensor& out) {
    try {
      k::conv2d_forward(image, weight, {}, one.options, Out(out));
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK_THAT(message(Tensor(), w, y), ContainsText("x is undefined"));
  CHECK_THAT(message(x, Tensor(), y), ContainsText("w is undefined"));
  CHECK_THAT(message(x, w, poisoned({2, 3, 5, 5})), ContainsText("y should have shape [2, 3, 5, 6]"));
  CHECK_THAT(message(x, in_dtype(w, DType::f64), y), ContainsText("x should be f64"));
  CHECK_THAT(message(x.contiguous(Layout::row_major), w, y), ContainsText("channels_last"));
  CHECK_THROWS_AS(k::conv2d_backward_bias(x, Out(Tensor::zeros({3}))), Error);
  const Tensor bad_mask = Tensor::zeros({5}, {DType::u8, Layout::row_major, {}});
  CHECK_THROWS_AS(k::conv_bias_relu_forward(x, w, {}, one.options, Out(y), Out(bad_mask)), Error);
}

}  // namespace tandem::test

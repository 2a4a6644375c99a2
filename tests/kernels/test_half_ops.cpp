// Half types on the CPU, op by op: the fast loops take them, and give the f32 results of the same numbers, rounded
// once.
#include "tandem/kernels/activation/gelu.h"
#include "tandem/kernels/activation/gelu_implementations.h"
#include "tandem/kernels/activation/relu.h"
#include "tandem/kernels/activation/relu_implementations.h"
#include "tandem/kernels/activation/silu.h"
#include "tandem/kernels/activation/silu_implementations.h"
#include "tandem/kernels/augment/augment_images.h"
#include "tandem/kernels/augment/augment_images_implementations.h"
#include "tandem/kernels/augment/crop2d.h"
#include "tandem/kernels/augment/crop2d_implementations.h"
#include "tandem/kernels/augment/flip_horizontal.h"
#include "tandem/kernels/augment/flip_horizontal_implementations.h"
#include "tandem/kernels/augment/pad2d.h"
#include "tandem/kernels/augment/pad2d_implementations.h"
#include "tandem/kernels/cast/cast.h"
#include "tandem/kernels/conv/implementations.h"
#include "tandem/kernels/dropout/dropout.h"
#include "tandem/kernels/dropout/dropout_implementations.h"
#include "tandem/kernels/elementwise/add.h"
#include "tandem/kernels/elementwise/add_implementations.h"
#include "tandem/kernels/elementwise/mul.h"
#include "tandem/kernels/elementwise/mul_implementations.h"
#include "tandem/kernels/elementwise/scale.h"
#include "tandem/kernels/elementwise/scale_implementations.h"
#include "tandem/kernels/gemm/gemm.h"
#include "tandem/kernels/gemm/gemm_implementations.h"
#include "tandem/kernels/gemm/linear.h"
#include "tandem/kernels/gemm/linear_implementations.h"
#include "tandem/kernels/loss/softmax_cross_entropy.h"
#include "tandem/kernels/loss/softmax_cross_entropy_implementations.h"
#include "tandem/kernels/pool/avg_pool2d.h"
#include "tandem/kernels/pool/avg_pool2d_implementations.h"
#include "tandem/kernels/pool/global_avg_pool2d.h"
#include "tandem/kernels/pool/global_avg_pool2d_implementations.h"
#include "tandem/kernels/pool/max_pool2d.h"
#include "tandem/kernels/pool/max_pool2d_implementations.h"
#include "tandem/kernels/reduce/sum.h"
#include "tandem/kernels/reduce/sum_implementations.h"
#include "tandem/kernels/reduce/sum_to.h"
#include "tandem/kernels/reduce/sum_to_implementations.h"
#include "tests/kernels/image_support.h"

#include <functional>

namespace tandem::test {
namespace {

namespace k = tandem::kernels;
using Inputs = std::vector<Tensor>;

Tensor like(const Tensor& x, const Shape& shape) { return Tensor::empty(shape, x.options(Layout::channels_last)); }

/// An op by its dispatcher, in the dtype of its inputs; f32 inputs run the f32 loops.
struct Op {
  std::string name;
  std::vector<Shape> inputs;
  std::function<std::vector<Tensor>(const Inputs&)> run;
};

Op unary(const std::string& name, void (*function)(const Tensor&, const Out&)) {
  return {name, {{3, 37, 9, 5}}, [function](const Inputs& in) {
            const Tensor out = empty_like(in[0]);
            function(in[0], Out(out));
            return std::vector<Tensor>{out};
          }};
}

Op binary(const std::string& name, void (*function)(const Tensor&, const Tensor&, const Out&)) {
  return {name, {{3, 37, 9, 5}, {3, 37, 9, 5}, {1, 37, 1, 1}, {3, 1, 1, 1}}, [function](const Inputs& in) {
            std::vector<Tensor> results;
            const auto add = [&](const Tensor& a, const Tensor& b) {
              results.push_back(empty_like(in[0]));
              function(a, b, Out(results.back()));
            };
            add(in[0], in[1]);
            add(in[0], in[2].expand(in[0].shape()));
            add(in[3].expand(in[0].shape()), in[0]);
            add(in[0], in[1].contiguous(Layout::row_major));
            return results;
          }};
}

std::vector<Op> pointwise_ops() {
  return {unary("relu", k::relu_forward),
          unary("gelu", k::gelu_forward),
          unary("silu", k::silu_forward),
          binary("relu backward", k::relu_backward),
          binary("gelu backward", k::gelu_backward),
          binary("silu backward", k::silu_backward),
          binary("add", k::add),
          binary("mul", k::mul),
          {"scale",
           {{1000}},
           [](const Inputs& in) {
             const Tensor out = empty_like(in[0]);
             k::scale(in[0], 0.3, Out(out));
             return std::vector<Tensor>{out};
           }},
          {"dropout", {{2, 33, 7, 5}}, [](const Inputs& in) {
             const Tensor out = empty_like(in[0]);
             k::dropout_forward(in[0], 0.3, {.seed = 5}, Out(out));
             return std::vector<Tensor>{out};
           }}};
}

std::vector<Op> image_ops() {
  const auto pool = [](const k::Pool2dOptions& options) {
    return [options](const Inputs& in) {
      const Shape shape = k::pool2d_output_shape("test", in[0].shape(), options);
      const Tensor largest = like(in[0], shape), mean = like(in[0], shape);
      const Tensor indices = Tensor::empty(shape, {DType::u8, Layout::channels_last, {}});
      k::max_pool2d_forward(in[0], options, Out(largest), Out(indices));
      k::avg_pool2d_forward(in[0], options, Out(mean));
      const Tensor grad_max = empty_like(in[0]), grad_mean = empty_like(in[0]);
      // Maxima are exact in every dtype, so they serve as gradients.
      k::max_pool2d_backward(largest, indices, options, Out(grad_max));
      k::avg_pool2d_backward(largest, options, Out(grad_mean));
      return std::vector<Tensor>{largest, mean, indices, grad_max, grad_mean};
    };
  };
  const auto pad = [](k::PadMode mode) {
    return [mode](const Inputs& in) {
      const k::Pad2dOptions options{1, 2, 3, 0, mode};
      const Tensor padded = like(in[0], k::pad2d_output_shape(in[0].shape(), options)), sums = empty_like(in[0]);
      k::pad2d(in[0], options, Out(padded));
      k::pad2d_backward(padded, options, Out(sums));
      return std::vector<Tensor>{padded, sums};
    };
  };
  const Shape images{3, 37, 9, 8};
  return {{"pooling", {images}, pool({})},
          {"pooling, overlapping", {images}, pool({.kernel = 3, .stride = 2, .padding = 1})},
          {"global pooling",
           {images, {3, 37, 1, 1}},
           [](const Inputs& in) {
             const Tensor y = empty_like(in[1]), grad_x = empty_like(in[0]);
             k::global_avg_pool2d_forward(in[0], Out(y));
             k::global_avg_pool2d_backward(in[1], Out(grad_x));
             return std::vector<Tensor>{y, grad_x};
           }},
          {"zero padding", {images}, pad(k::PadMode::zero)},
          {"reflecting padding", {images}, pad(k::PadMode::reflect)},
          {"crop and flip",
           {images},
           [](const Inputs& in) {
             const Tensor window = like(in[0], {3, 37, 4, 5}), around = empty_like(in[0]), flipped = empty_like(in[0]);
             k::crop2d(in[0], 2, 1, Out(window));
             k::crop2d_backward(window, 2, 1, Out(around));
             k::flip_horizontal(in[0], Out(flipped));
             return std::vector<Tensor>{window, around, flipped};
           }},
          {"sums", {images}, [](const Inputs& in) {
             const Tensor all = like(in[0], {}), mean = like(in[0], {});
             const Tensor channels = like(in[0], {1, 37, 1, 1}), columns = like(in[0], {8});
             k::sum(in[0], Out(all));
             k::mean(in[0].transpose(1, 2), Out(mean));
             k::sum_to(in[0], Out(channels));
             k::sum_to(in[0], Out(columns));
             return std::vector<Tensor>{all, mean, channels, columns};
           }}};
}

std::vector<Op> matrix_ops() {
  std::vector<Op> ops;
  for (const bool transposed : {false, true}) {
    ops.push_back(
        {transposed ? "gemm, transposed" : "gemm",
         {transposed ? Shape{300, 29} : Shape{29, 300}, transposed ? Shape{65, 300} : Shape{300, 65}, {29, 70}},
         [transposed](const Inputs& in) {
           const k::GemmOptions options{transposed, transposed, true};
           const Tensor c = in[2].clone();
           k::gemm(in[0], in[1], options, Out(c.narrow(1, 3, 65)));
           return std::vector<Tensor>{c};
         }});
  }
  for (const bool relu : {false, true})
    ops.push_back(
        {relu ? "linear with ReLU" : "linear", {{19, 70}, {33, 70}, {33}, {19, 33}}, [relu](const Inputs& in) {
           const Tensor y = empty_like(in[3]);
           k::linear_forward(in[0], in[1], in[2], relu, Out(y));
           const Tensor gx = empty_like(in[0]), gw = empty_like(in[1]), gb = empty_like(in[2]);
           // The given numbers stand for y in backward, so that a rounded 0 cannot differ.
           k::linear_backward(in[0], in[1], relu ? in[3] : Tensor(), in[3], Out(gx), Out(gw), Out(gb));
           return std::vector<Tensor>{y, gx, gw, gb};
         }});
  ops.push_back({"softmax cross-entropy", {{9, 37}}, [](const Inputs& in) {
                   const Tensor loss = Tensor::zeros({}), p = Tensor::zeros({9, 37}), grad = empty_like(in[0]);
                   const Tensor labels = Tensor::from(std::vector<std::int64_t>{0, 5, 36, 7, 1, 2, 3, 4, 11}, {9});
                   k::softmax_cross_entropy_forward(in[0], labels, 0.1, Out(loss), Out(p));
                   k::softmax_cross_entropy_backward(p, labels, 0.1, Tensor::full({}, 3.0), Out(grad));
                   return std::vector<Tensor>{loss, p, grad};
                 }});
  return ops;
}

std::vector<Op> all_ops() {
  std::vector<Op> ops = pointwise_ops();
  for (const auto& more : {image_ops(), matrix_ops()}) ops.insert(ops.end(), more.begin(), more.end());
  return ops;
}

std::vector<Tensor> run_poisoned(const Op& op, const Inputs& inputs) {
  const PoisonScope poison;
  return op.run(inputs);
}

}  // namespace

TEST_CASE("ops on half types give the f32 results of the same numbers, rounded once", "[half]") {
  const DType dtype = GENERATE(DType::f16, DType::bf16);
  for (const Op& op : all_ops()) {
    INFO(op.name << " in " << name_of(dtype));
    Inputs half, full;
    for (std::size_t i = 0; i < op.inputs.size(); ++i) {
      half.push_back(in_dtype(random_images(op.inputs[i], 10 + static_cast<std::uint32_t>(i)), dtype));
      full.push_back(in_dtype(half.back(), DType::f32));
    }
    const std::vector<Tensor> expected = run_poisoned(op, full), got = run_poisoned(op, half);
    for (std::size_t i = 0; i < got.size(); ++i) {
      INFO("result " << i);
      CHECK(same_bits(got[i], in_dtype(expected[i], got[i].dtype())));
    }
    const ThreadScope scope(3);
    const std::vector<Tensor> again = run_poisoned(op, half);
    for (std::size_t i = 0; i < got.size(); ++i) CHECK(same_bits(got[i], again[i]));
  }
}

TEST_CASE("the fast loops of the CPU take half types", "[half]") {
  const DType dtype = GENERATE(DType::f16, DType::bf16);
  const TensorOptions options{dtype, Layout::channels_last, {}};
  const Tensor x = Tensor::zeros({2, 16, 4, 4}, options), y = Tensor::zeros({2, 16, 2, 2}, options);
  const Tensor matrix = Tensor::zeros({4, 4}, options);
  CHECK(k::cpu::relu_supports(x));
  CHECK(k::cpu::gelu_supports(x));
  CHECK(k::cpu::silu_supports(x));
  CHECK(k::cpu::add_supports(x));
  CHECK(k::cpu::mul_supports(x));
  CHECK(k::cpu::scale_supports(x));
  CHECK(k::cpu::supports_dropout(x, x));
  CHECK(k::cpu::supports_max_pool2d(x, y, {}));
  CHECK(k::cpu::supports_avg_pool2d(x, y));
  CHECK(k::cpu::supports_global_avg_pool2d(x, y));
  CHECK(k::cpu::pad2d_supports(x, x));
  CHECK(k::cpu::crop2d_supports(x));
  CHECK(k::cpu::flip_horizontal_supports(x, x));
  CHECK(k::cpu::augment_images_supports(x));
  CHECK(k::cpu::sum_supports(x));
  CHECK(k::cpu::sum_to_supports(x));
  CHECK(k::cpu::supports_gemm(matrix));
  CHECK(k::cpu::supports_linear(matrix));
  CHECK(k::cpu::supports_softmax_cross_entropy(matrix));
  const k::ConvGeometry geometry = k::make_geometry({2, 16, 4, 4}, {16, 16, 3, 3}, {});
  CHECK(k::cpu::choose_conv(geometry, dtype, k::ConvImpl::automatic) != k::kPlainLoops);
  CHECK(k::cpu::choose_conv(geometry, dtype, k::ConvImpl::fused) != k::kPlainLoops);
  CHECK(k::cpu::choose_conv(geometry, DType::f64, k::ConvImpl::automatic) == k::kPlainLoops);
}

TEST_CASE("half images are augmented as f32 ones, rounded once", "[half]") {
  const DType dtype = GENERATE(DType::f16, DType::bf16);
  const Tensor source = Tensor::empty({4, 3, 9, 7}, {.dtype = DType::u8});
  const RandomKey key{.seed = 4};
  for (std::int64_t i = 0; i < source.numel(); ++i)
    Out(source).data<std::uint8_t>()[i] = static_cast<std::uint8_t>(key.below(static_cast<std::uint64_t>(i), 256));
  const std::vector<std::int64_t> indices{3, 0, 2};
  std::vector<k::ImageAugment> augments(3);
  augments[1].flip = true;
  augments[1].shift_x = 2;
  augments[2].degrees = 20.0f;
  augments[2].contrast = 0.7f;
  const std::vector<float> mean{0.4f, 0.5f, 0.6f}, deviation{0.2f, 0.3f, 0.25f};
  const k::AugmentImagesOptions options{.mean = mean, .deviation = deviation};
  const Tensor full = Tensor::empty({3, 3, 9, 7}, {.layout = Layout::channels_last});
  const Tensor half = Tensor::empty({3, 3, 9, 7}, {.dtype = dtype, .layout = Layout::channels_last});
  k::augment_images(source, indices, augments, options, Out(full));
  k::augment_images(source, indices, augments, options, Out(half));
  CHECK(same_bits(half, in_dtype(full, dtype)));
}

}  // namespace tandem::test

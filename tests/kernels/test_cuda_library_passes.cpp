// What is done around libraries on a GPU: bias, ReLU and masks that they do not fuse, and the choice among passes.
#include "tandem/kernels/conv/conv.h"
#include "tandem/kernels/conv/cudnn/library_passes.h"
#include "tandem/kernels/gemm/cublas/library_products.h"
#include "tandem/kernels/gemm/linear.h"
#include "tandem/kernels/gemm/linear_implementations.h"
#include "tests/kernels/conv_support.h"
#include "tests/kernels/host_blas.h"
#include "tests/kernels/product_support.h"
#include "tests/kernels/scripted_conv_library.h"
#include "tests/support/catch.h"
#include "tests/support/skip.h"

namespace tandem::test {
namespace {

namespace k = tandem::kernels;
using k::ConvPass;
constexpr Layout kLast = Layout::channels_last;

/// Copies to the CPU, multiplies there by columns, and copies the storage of the result back.
class HostMatrixLibrary final : public k::MatrixLibrary {
 public:
  void know(const Tensor& tensor) { known_.push_back(tensor); }
  int calls = 0;

  void multiply(const k::ColumnMajorProduct& product, Device) override {
    ++calls;
    k::ColumnMajorProduct here = product;
    std::vector<Tensor> copies;
    const auto moved = [&](const void* address) {
      for (const Tensor& tensor : known_) {
        if (tensor.raw_data() != address) continue;
        copies.push_back(tensor.to(Device{}));
        return copies.back();
      }
      fail("the product works on memory that the test does not know");
    };
    here.a = moved(product.a).raw_data();
    here.b = moved(product.b).raw_data();
    const Out c(moved(product.c));
    here.c = c.raw_data();
    host_blas(here);
    for (const Tensor& tensor : known_)
      if (tensor.raw_data() == product.c) tensor.copy_from(c);
  }

 private:
  std::vector<Tensor> known_;
};

/// y, mask and what the library was asked for.
void check_forward(ScriptedConvLibrary& library, bool use_bias, bool relu, DType dtype,
                   const std::vector<std::string>& calls) {
  const ConvCase one = square_case(2, 3, 5, 4, 8, 3, 1);
  const k::ConvGeometry g = one.geometry();
  const Tensor x = drawn(one.x(), dtype, 1, true, kLast), w = drawn(one.weight(), dtype, 2, true, kLast);
  const Tensor bias = use_bias ? drawn({one.k}, dtype, 3, true) : Tensor();
  const Tensor y = poisoned_on_gpu(one.y(), dtype, kLast);
  const Tensor mask =
      relu ? Tensor::full(k::conv_mask_shape(one.y()), 255.0, {.dtype = DType::u8, .device = kGpu}) : Tensor();
  library.calls.clear();
  k::cuda::library_forward(library, g, on_gpu(x), on_gpu(w), {.bias = on_gpu(bias), .relu = relu, .mask = Out(mask)},
                           Out(y));
  const Tensor expected = in_f64(y, kLast);
  k::reference::conv2d_forward(in_f64(x, kLast), in_f64(w, kLast), use_bias ? in_f64(bias) : Tensor(), g, relu,
                               Out(expected));
  CHECK(difference(y, expected) == "");
  CHECK(library.calls == calls);
  if (!relu) return;
  const Tensor bits = Tensor::empty(mask.shape(), {.dtype = DType::u8});
  k::reference::sign_mask(y.to(Device{}), Out(bits));
  CHECK(mask.to(Device{}).to_vector<int>() == bits.to_vector<int>());
}

}  // namespace

TEST_CASE("bias and ReLU are fused where the library does, else added", "[cuda][conv]") {
  if (!has_gpu()) return;
  for (const DType dtype : kGpuDTypes) {
    ScriptedConvLibrary library;
    check_forward(library, false, false, dtype, {"the forward pass"});
    check_forward(library, true, false, dtype, {"the forward pass with bias"});
    check_forward(library, false, true, dtype, {"the forward pass with ReLU"});
    check_forward(library, true, true, dtype, {"the forward pass with bias and ReLU"});
    library.refused = {ConvPass::forward_bias, ConvPass::forward_relu, ConvPass::forward_bias_relu};
    for (const bool bias : {false, true})
      for (const bool relu : {false, true}) check_forward(library, bias, relu, dtype, {"the forward pass"});
  }
}

TEST_CASE("gradients are masked before a library gets them", "[cuda][conv]") {
  if (!has_gpu()) return;
  for (const DType dtype : kGpuDTypes) {
    const Tensor grad_y = drawn({2, 5, 3, 7}, dtype, 1, true, kLast);
    const Tensor mask = Tensor::empty(k::conv_mask_shape(grad_y.shape()), {.dtype = DType::u8});
    for (std::int64_t i = 0; i < mask.numel(); ++i)
      Out(mask).data<std::uint8_t>()[i] = static_cast<std::uint8_t>(37 * i + 11);
    const Tensor expected = empty_like(grad_y), there = on_gpu(grad_y);
    k::reference::apply_mask(grad_y, mask, Out(expected));
    const PoisonScope poison;
    CHECK(difference(k::cuda::masked_gradient(there, on_gpu(mask)), in_f64(expected, kLast)) == "");
    CHECK(k::cuda::masked_gradient(there, {}).is_same(there));
  }
}

TEST_CASE("a library does the work of the layer below where it can, else it is done after", "[cuda][conv]") {
  if (!has_gpu()) return;
  const ConvCase one = square_case(2, 8, 5, 4, 16, 3, 1);
  const k::ConvGeometry g = one.geometry();
  for (const DType dtype : kGpuDTypes) {
    const Tensor x = drawn(one.x(), dtype, 6, true, kLast);
    const Tensor bits = Tensor::empty(k::conv_mask_shape(one.x()), {.dtype = DType::u8});
    k::reference::sign_mask(x, Out(bits));
    const Tensor grad_y = drawn(one.y(), dtype, 1, true, kLast), w = drawn(one.weight(), dtype, 2, true, kLast);
    const auto check = [&](const std::vector<ConvPass>& refused, bool has_x, bool masks, bool sums,
                           const std::string& call) {
      INFO(name_of(dtype) << " x " << has_x << " mask " << masks << " sums " << sums << ", " << call);
      ScriptedConvLibrary library;
      library.refused = refused;
      library.plans = 4;
      const Tensor grad_x = poisoned_on_gpu(one.x(), dtype, kLast), grad_bias = poisoned_on_gpu({one.c}, dtype);
      k::cuda::library_backward_input(library, g, on_gpu(grad_y), on_gpu(w), has_x ? on_gpu(x) : Tensor(),
                                      {masks ? on_gpu(bits) : Tensor(), Out(sums ? grad_bias : Tensor())}, Out(grad_x),
                                      3);
      CHECK(library.calls == std::vector<std::string>{call});
      CHECK(library.plans_run == std::vector<int>{3});
      const Tensor whole = in_f64(grad_x, kLast), expected = empty_like(whole), added = in_f64(grad_bias);
      k::reference::conv2d_backward_input(in_f64(grad_y, kLast), in_f64(w, kLast), g, Out(whole));
      k::reference::apply_mask(whole, bits, Out(expected));
      CHECK(difference(grad_x, masks ? expected : whole) == "");
      k::reference::conv2d_backward_bias(masks ? expected : whole, Out(added));
      if (sums) CHECK(difference(grad_bias, added) == "");
    };
    const std::string plain = "the input gradient", gated = plain + " through ReLU", all = gated + " with its sums";
    check({}, true, true, true, all);
    check({}, true, true, false, gated);
    check({}, true, false, true, plain);
    check({}, false, true, true, plain);
    check({ConvPass::backward_input_relu_bias}, true, true, true, gated);
    check({ConvPass::backward_input_relu_bias, ConvPass::backward_input_relu}, true, true, true, plain);
    ScriptedConvLibrary library;
    CHECK(k::cuda::library_fuses_layer_below(library, g, on_gpu(x), on_gpu(w)));
    library.refused = {ConvPass::backward_input_relu};
    CHECK(!k::cuda::library_fuses_layer_below(library, g, on_gpu(x), on_gpu(w)));
  }
}

TEST_CASE("a library masks a gradient and sums it up", "[cuda][conv]") {
  if (!has_gpu()) return;
  const ConvCase one = square_case(2, 3, 5, 4, 8, 3, 1);
  for (const DType dtype : kGpuDTypes) {
    INFO(name_of(dtype));
    const Tensor y = drawn(one.y(), dtype, 6, true, kLast), grad_y = drawn(one.y(), dtype, 1, true, kLast);
    const Tensor open = poisoned_on_gpu(one.y(), dtype, kLast), grad_bias = poisoned_on_gpu({one.k}, dtype);
    ScriptedConvLibrary library;
    k::cuda::library_backward_relu_bias(library, one.geometry(), on_gpu(grad_y), on_gpu(y), Out(open), Out(grad_bias));
    const Tensor bits = Tensor::empty(k::conv_mask_shape(one.y()), {.dtype = DType::u8});
    k::reference::sign_mask(y, Out(bits));
    const Tensor expected = in_f64(grad_y, kLast), added = in_f64(grad_bias);
    k::reference::apply_mask(in_f64(grad_y, kLast), bits, Out(expected));
    k::reference::conv2d_backward_bias(expected, Out(added));
    CHECK(difference(open, expected) == "");
    CHECK(difference(grad_bias, added) == "");
    library.refused = {ConvPass::backward_relu_bias};
    CHECK_THAT(error_of([&] {
                 k::cuda::library_backward_relu_bias(library, one.geometry(), on_gpu(grad_y), on_gpu(y), Out(open),
                                                     Out(grad_bias));
               }),
               ContainsText("no code for the gradient through ReLU with its sums"));
  }
}

TEST_CASE("a library gets no tensor at an odd address", "[cuda][conv]") {
  if (!has_gpu()) return;
  ScriptedConvLibrary library;
  const ConvCase one = square_case(1, 8, 4, 4, 8, 1, 0);
  const k::ConvTask task{one.geometry(), DType::f32, ConvPass::forward};
  const auto at = [](const Shape& shape, std::int64_t offset) {
    const Tensor memory = Tensor::zeros({element_count(shape) + 4}, {.device = kGpu});
    return memory.as_strided(shape, dense_strides(shape, kLast), offset);
  };
  const Tensor x = at(one.x(), 0), w = at(one.weight(), 0), y = at(one.y(), 4);
  CHECK(k::cuda::library_takes(library, task, {x, w, y}));
  CHECK(!k::cuda::library_takes(library, task, {at(one.x(), 1), w, y}));
  CHECK(!k::cuda::library_takes(library, task, {x, at(one.weight(), 2), y}));
  CHECK(!k::cuda::library_takes(library, task, {x, w, at(one.y(), 3)}));
  CHECK(!k::cuda::library_takes(library, task, {x, w, y, at({8}, 1)}));
  library.refused = {ConvPass::forward};
  CHECK(!k::cuda::library_takes(library, task, {x, w, y}));
}

TEST_CASE("linear by a library of products matches the reference", "[cuda][gemm]") {
  if (!has_gpu()) return;
  for (const DType dtype : kGpuDTypes)
    for (const bool relu : {false, true})
      for (const bool use_bias : {false, true}) {
        INFO(name_of(dtype) << " relu " << relu << " bias " << use_bias);
        const Tensor x = drawn({5, 7}, dtype, 1, true), w = drawn({6, 7}, dtype, 2, true);
        const Tensor bias = use_bias ? drawn({6}, dtype, 3, true) : Tensor();
        const Tensor gx = on_gpu(x), gw = on_gpu(w), y = poisoned_on_gpu({5, 6}, dtype);
        HostMatrixLibrary library;
        for (const Tensor& tensor : {gx, gw, y}) library.know(tensor);
        k::cuda::library_linear_forward(library, gx, gw, on_gpu(bias), relu, Out(y));
        const Tensor expected = in_f64(y);
        k::reference::linear_forward(in_f64(x), in_f64(w), in_f64(bias), relu, Out(expected));
        CHECK(difference(y, expected) == "");

        if (relu) continue;  // the masked gradient is in memory that this library does not know
        const Tensor grad_y = drawn({5, 6}, dtype, 4, true), gg = on_gpu(grad_y);
        const Tensor grad_x = poisoned_on_gpu({5, 7}, dtype), grad_w = poisoned_on_gpu({6, 7}, dtype);
        const Tensor grad_bias = poisoned_on_gpu({6}, dtype);
        for (const Tensor& tensor : {gg, grad_x, grad_w}) library.know(tensor);
        k::cuda::library_linear_backward(library, gx, gw, {}, gg, Out(grad_x), Out(grad_w), Out(grad_bias));
        const Tensor expected_x = in_f64(grad_x), expected_w = in_f64(grad_w), expected_bias = in_f64(grad_bias);
        k::reference::linear_backward(in_f64(x), in_f64(w), {}, in_f64(grad_y), Out(expected_x), Out(expected_w),
                                      Out(expected_bias));
        CHECK(difference(grad_x, expected_x) == "");
        CHECK(difference(grad_w, expected_w) == "");
        CHECK(difference(grad_bias, expected_bias) == "");
        CHECK(library.calls == 3);
      }
}

TEST_CASE("the ReLU of a linear layer masks its gradients before a library gets them", "[cuda][gemm]") {
  if (!has_gpu()) return;
  const Tensor output = drawn({5, 6}, DType::f32, 1, true), grad_y = drawn({5, 6}, DType::f32, 2, true);
  const Tensor x = drawn({5, 7}, DType::f32, 3, true), w = drawn({6, 7}, DType::f32, 4, true);
  const Tensor grad_bias = poisoned_on_gpu({6}, DType::f32), expected = in_f64(grad_bias);
  HostMatrixLibrary library;
  k::cuda::library_linear_backward(library, on_gpu(x), on_gpu(w), on_gpu(output), on_gpu(grad_y), {}, {},
                                   Out(grad_bias));
  k::reference::linear_backward(in_f64(x), in_f64(w), in_f64(output), in_f64(grad_y), {}, {}, Out(expected));
  CHECK(difference(grad_bias, expected) == "");
}

TEST_CASE("libraries are refused on simulated GPUs", "[cuda]") {
  if (!has_gpu()) return;
  if (!cuda_is_simulated()) return skip_test("this GPU is not simulated");
  const Tensor a = Tensor::zeros({2, 2}, {.device = kGpu});
  CHECK_THAT(error_of([&] { k::gemm(a, a, {.impl = k::GemmImpl::cublas}, Out(a.clone())); }),
             ContainsText("gemm: cuBLAS does not run on simulated GPUs; choose auto or fused"));
  const Tensor x = Tensor::zeros({1, 1, 2, 2}, {.layout = kLast, .device = kGpu});
  CHECK_THAT(
      error_of([&] { k::conv2d_forward(x, x, {}, {.padding = {1, 1}, .impl = k::ConvImpl::cudnn}, Out(x.clone())); }),
      ContainsText("conv2d_forward: cuDNN does not run on simulated GPUs"));
}

}  // namespace tandem::test

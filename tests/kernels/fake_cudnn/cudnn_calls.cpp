// Operation graphs for cuDNN, carried out by a library that computes them in host memory; and versions that are
// refused.
#include "tandem/kernels/conv/cudnn/conv_library.h"
#include "tests/kernels/conv_support.h"
#include "tests/kernels/product_support.h"
#include "tests/support/catch.h"

#include <cmath>
#include <limits>

namespace tandem::test {
namespace {

namespace k = tandem::kernels;
using k::ConvPass;
constexpr Layout kLast = Layout::channels_last;

std::string refusal(const std::string& file) {
  return error_of([&] { LibraryFile(k::cudnn_library(), {file}); });
}

void check_pass(k::ConvLibrary& library, const ConvCase& one, DType dtype, ConvPass pass, int plan) {
  INFO("plan " << plan << ", " << name_of(dtype) << ", " << k::name_of(pass) << ", " << one.text());
  const k::ConvGeometry g = one.geometry();
  const Tensor x = drawn(one.x(), dtype, 1, true, kLast), w = drawn(one.weight(), dtype, 2, true, kLast);
  const Tensor y = drawn(one.y(), dtype, 3, true, kLast);
  const bool has_bias = pass == ConvPass::forward_bias || pass == ConvPass::forward_bias_relu;
  const bool relu = pass == ConvPass::forward_relu || pass == ConvPass::forward_bias_relu;
  const Tensor bias = has_bias ? drawn({one.k}, dtype, 4, true) : Tensor();
  const Tensor wide_x = in_f64(x, kLast), wide_w = in_f64(w, kLast), wide_y = in_f64(y, kLast);
  const bool sums_up = pass == ConvPass::backward_input_relu_bias;
  const bool gated = sums_up || pass == ConvPass::backward_input_relu;
  const Tensor gate = gated ? drawn(one.x(), dtype, 5, true, kLast) : Tensor();
  const Tensor sums = sums_up ? Tensor::full({1, one.c}, -1.0) : Tensor();
  REQUIRE(library.supports({g, dtype, pass}, Device{}));
  const int plans = library.plan_count({g, dtype, pass}, Device{});
  CHECK(plans == (dtype == DType::f32 ? 1 : 3));  // tensor cores may have halves: advised twice
  const auto run = [&](int number) { library.run({g, dtype, pass}, {x, w, y, bias, gate, sums}, number); };
  if (plan >= plans) {
    CHECK_THAT(error_of([&] { run(plan); }), ContainsText(fmt::format("cuDNN: no plan number {} for ", plan)));
    return;
  }
  run(plan);
  if (gated) {
    const Tensor bits = Tensor::empty(k::conv_mask_shape(one.x()), {.dtype = DType::u8});
    k::reference::sign_mask(gate, Out(bits));
    const Tensor whole = empty_like(wide_x), added = in_f64(Tensor::zeros({one.c}));
    k::reference::conv2d_backward_input(wide_y, wide_w, g, Out(whole));
    k::reference::apply_mask(whole, bits, Out(wide_x));
    CHECK(difference(x, wide_x) == "");
    k::reference::conv2d_backward_bias(wide_x, Out(added));
    if (sums_up) CHECK(sums.to_vector<double>() == added.to_vector<double>());
  } else if (pass == ConvPass::backward_input) {
    k::reference::conv2d_backward_input(wide_y, wide_w, g, Out(wide_x));
    CHECK(difference(x, wide_x) == "");
  } else if (pass == ConvPass::backward_weight) {
    k::reference::conv2d_backward_weight(wide_x, wide_y, g, Out(wide_w));
    CHECK(difference(w, wide_w) == "");
  } else {
    k::reference::conv2d_forward(wide_x, wide_w, in_f64(bias), g, relu, Out(wide_y));
    CHECK(difference(y, wide_y) == "");
  }
}

}  // namespace

TEST_CASE("cuDNN gets every pass as a graph, and runs it by an exact, deterministic engine", "[conv]") {
  const auto library = k::make_cudnn({k::cudnn_library(), {FAKE_CUDNN}});
  std::vector<ConvCase> cases{square_case(2, 3, 5, 4, 8, 3, 1), square_case(1, 5, 7, 6, 4, 1, 0, 2),
                              square_case(1, 4, 9, 9, 6, 3, 2, 1, 2), square_case(2, 6, 4, 5, 9, 3, 1, 1, 1, 3)};
  cases.push_back({1, 5, 7, 9, 8, 5, 3, {{2, 1}, {1, 2}, {1, 2}, 1}});
  for (const ConvCase& one : cases)
    for (const DType dtype : kGpuDTypes)
      for (const ConvPass pass : {ConvPass::forward, ConvPass::forward_bias, ConvPass::forward_relu,
                                  ConvPass::forward_bias_relu, ConvPass::backward_input, ConvPass::backward_input_relu,
                                  ConvPass::backward_input_relu_bias, ConvPass::backward_weight})
        for (const int plan : {0, 2, 7})
          check_pass(*library, one, dtype, pass, plan);  // one of that number, or an error
}

TEST_CASE("cuDNN masks a gradient and sums it up in one graph", "[conv]") {
  const auto library = k::make_cudnn({k::cudnn_library(), {FAKE_CUDNN}});
  const ConvCase one = square_case(2, 3, 5, 4, 8, 3, 1, 2);
  for (const DType dtype : kGpuDTypes) {
    const k::ConvTask task{one.geometry(), dtype, ConvPass::backward_relu_bias};
    const Tensor gradient = drawn(one.y(), dtype, 1, true, kLast), y = drawn(one.y(), dtype, 2, true, kLast);
    const Tensor open = empty_like(gradient), sums = Tensor::full({1, one.k}, -1.0);
    REQUIRE(library->supports(task, Device{}));
    library->run(task, {open, {}, gradient, {}, y, sums});
    const Tensor bits = Tensor::empty(k::conv_mask_shape(one.y()), {.dtype = DType::u8});
    k::reference::sign_mask(y, Out(bits));
    const Tensor expected = in_f64(gradient, kLast), added = in_f64(Tensor::zeros({one.k}));
    k::reference::apply_mask(in_f64(gradient, kLast), bits, Out(expected));
    k::reference::conv2d_backward_bias(expected, Out(added));
    CHECK(difference(open, expected) == "");
    CHECK(sums.to_vector<double>() == added.to_vector<double>());
  }
}

TEST_CASE("what cuDNN does not support is not run", "[conv]") {
  const auto library = k::make_cudnn({k::cudnn_library(), {FAKE_CUDNN}});
  const k::ConvTask strided{square_case(1, 3, 9, 9, 4, 3, 1, 3).geometry(), DType::f32, ConvPass::forward};
  CHECK(!library->supports(strided, Device{}));
  CHECK(library->plan_count(strided, Device{}) == 0);
  CHECK(library->version() == "cuDNN 9.19.0");
  CHECK(!library->supports({square_case(1, 3, 9, 9, 4, 3, 1).geometry(), DType::f64, ConvPass::forward}, Device{}));
  CHECK_THAT(error_of([&] { library->run(strided, {Tensor::zeros({1}), Tensor::zeros({1}), Tensor::zeros({1})}); }),
             ContainsText("cuDNN: no plan for the forward pass: ") && ContainsText("the pretended cuDNN says no"));
}

TEST_CASE("cuDNN's ReLU lets NaN through", "[conv]") {
  const auto library = k::make_cudnn({k::cudnn_library(), {FAKE_CUDNN}});
  const ConvCase one = square_case(1, 1, 2, 2, 1, 1, 0);
  for (const ConvPass pass : {ConvPass::forward_relu, ConvPass::forward_bias_relu}) {
    const Tensor x =
        Tensor::from(std::vector<float>{-1.0f, 2.0f, std::numeric_limits<float>::quiet_NaN(), -3.0f}, one.x());
    const Tensor w = Tensor::full(one.weight(), 1.0), bias = Tensor::zeros({1}), y = Tensor::zeros(one.y());
    const bool has_bias = pass == ConvPass::forward_bias_relu;
    library->run({one.geometry(), DType::f32, pass}, {x, w, y, has_bias ? bias : Tensor()});
    const std::vector<float> values = y.to_vector<float>();
    CHECK(values[0] == 0.0f);
    CHECK(values[1] == 2.0f);
    CHECK(std::isnan(values[2]));
    CHECK(values[3] == 0.0f);
  }
}

TEST_CASE("errors of cuDNN are told in its words", "[conv]") {
  const auto library = k::make_cudnn({k::cudnn_library(), {FAKE_CUDNN}});
  const ConvCase one = square_case(1, 4, 6, 6, 4, 3, 1);
  const Tensor x = Tensor::zeros(one.x()), w = Tensor::zeros(one.weight()), y = Tensor::zeros(one.y());
  const k::ConvTask task{one.geometry(), DType::f32, ConvPass::forward_bias};
  CHECK_THAT(error_of([&] { library->run(task, {x, w, y}); }),
             ContainsText(" from execute_plan_at_index at plans_cudnn.cpp:") && ContainsText("; choose impl fused"));
  const Tensor unaligned = Tensor::zeros({5}).as_strided({4}, {1}, 1);
  CHECK_THAT(error_of([&] { library->run(task, {x, w, y, unaligned}); }),
             ContainsText("cuDNN: ") && ContainsText("the pretended cuDNN says no") && ContainsText("bad parameter"));
}

TEST_CASE("a process works with one cuDNN", "[conv]") {
  const auto library = k::make_cudnn({k::cudnn_library(), {FAKE_CUDNN}});
  CHECK_THAT(error_of([&] { k::make_cudnn({k::cudnn_library(), {FAKE_CUDNN_LATER}}); }),
             ContainsText(FAKE_CUDNN) && ContainsText(FAKE_CUDNN_LATER) && ContainsText("this process works with"));
}

TEST_CASE("a cuDNN of another version or without functions is refused", "[conv]") {
  CHECK_THAT(refusal(FAKE_CUDNN_TOO_OLD), ContainsText("is cuDNN 8.9.7, but 9.0 is the least"));
  CHECK_THAT(refusal(FAKE_CUDNN_TOO_NEW), ContainsText("is cuDNN 10.2.0, but this program knows cuDNN 9 only"));
  CHECK_THAT(refusal(FAKE_CUBLAS), ContainsText("is not the cuDNN that is needed, it has no cudnnGetVersion"));
  CHECK_THAT(refusal("/none/libcudnn.so"),
             ContainsText("install cuDNN, or let TANDEM_CUDNN_LIBRARY name its libcudnn.so.9"));
}

}  // namespace tandem::test

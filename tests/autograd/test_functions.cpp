// What the op table does not ask of the functions: results on special values, layouts, memory kept.
#include "tandem/autograd/functions.h"
#include "tandem/autograd/gradcheck.h"
#include "tandem/autograd/variable.h"
#include "tandem/core/memory.h"
#include "tandem/core/parallel.h"
#include "tandem/kernels/activation/activation.h"
#include "tandem/kernels/reduce/sum_to_implementations.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"
#include "tests/support/whole_numbers.h"

#include <cmath>
#include <functional>
#include <limits>

using namespace tandem;
using namespace tandem::autograd;
using namespace tandem::test;

namespace {

using Values = std::vector<float>;

Tensor leaf(const Values& values) {
  return set_requires_grad(Tensor::from(values, {static_cast<std::int64_t>(values.size())}));
}

constexpr float kInfinity = std::numeric_limits<float>::infinity();

}  // namespace

TEST_CASE("activations at zero, infinities and NaN") {
  const Tensor x = Tensor::from<float>({0.0f, kInfinity, -kInfinity, std::nanf("")}, {4});
  const Values rectified = relu(x).to_vector<float>();
  CHECK(rectified[0] == 0.0f);
  CHECK(rectified[1] == kInfinity);
  CHECK(rectified[2] == 0.0f);
  CHECK(std::isnan(rectified[3]));
  for (const auto function : {gelu, silu}) {
    const Values y = function(x).to_vector<float>();
    CHECK(y[0] == 0.0f);
    CHECK(y[1] == kInfinity);
    CHECK(std::isnan(y[3]));
    const Values tails = function(Tensor::from<float>({-60.0f, 60.0f, -20.0f, 20.0f}, {4})).to_vector<float>();
    CHECK(std::abs(tails[0]) < 1e-20f);
    CHECK(tails[1] == 60.0f);
    CHECK(std::abs(tails[2]) < 1e-6f);
    CHECK(tails[3] == 20.0f);
  }
}

TEST_CASE("gelu and silu of huge numbers are these or 0, and their slopes 1 or 0") {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f64}) {
    for (const auto function : {gelu, silu}) {
      INFO(name_of(dtype));
      const Tensor x =
          set_requires_grad(cast(Tensor::from<float>({3e38f, 1e30f, 1e10f, -1e10f, -1e30f, -3e38f}, {6}), dtype));
      const Tensor y = function(x);
      const std::vector<double> in = x.to_vector<double>(), out = y.to_vector<double>();
      backward(sum(y));
      const std::vector<double> slopes = grad(x).to_vector<double>();
      for (std::size_t i = 0; i < in.size(); ++i) {
        CHECK(out[i] == (in[i] > 0 ? in[i] : 0.0));
        CHECK(slopes[i] == (in[i] > 0 ? 1.0 : 0.0));
      }
      CHECK(std::isnan(
          function(Tensor::full({}, -INFINITY, {.dtype = dtype})).item()));  // as x times 0 is, and in PyTorch
    }
  }
}

TEST_CASE("relu has gradient 0 at 0") {
  const Tensor x = leaf({-1.0f, 0.0f, 2.0f});
  backward(sum(relu(x)));
  CHECK(grad(x).to_vector<float>() == Values{0.0f, 0.0f, 1.0f});
}

TEST_CASE("the ReLU of linear_relu lets gradients of NaN through, as relu does") {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::f64}) {
    const auto gradients = [dtype](bool fused) {
      const auto leaf_of = [dtype](const Values& values, const Shape& shape) {
        return set_requires_grad(cast(Tensor::from(values, shape), dtype));
      };
      const Tensor x = leaf_of({1.0f, 2.0f, std::nanf(""), 1.0f, -1.0f, -2.0f}, {3, 2}), bias = leaf_of({0.5f}, {1});
      const Tensor weight = leaf_of({1.0f, 2.0f}, {1, 2});
      backward(sum(fused ? linear_relu(x, weight, bias) : relu(linear(x, weight, bias))));
      Values all = grad(x).to_vector<float>();
      all.push_back(grad(bias).to_vector<float>().front());
      return all;
    };
    CHECK(gradients(true) == Values{1.0f, 2.0f, 1.0f, 2.0f, 0.0f, 0.0f, 2.0f});
    CHECK(gradients(true) == gradients(false));
  }
}

TEST_CASE("the gradient of linear's bias keeps its digits over a million rows") {
  constexpr std::int64_t kRows = 1000000;
  const Tensor bias = set_requires_grad(Tensor::zeros({2}));
  const Tensor y = linear(Tensor::zeros({kRows, 1}), Tensor::zeros({2, 1}), bias);
  backward(y, Tensor::full({kRows, 2}, 0.1));
  for (const float sum : grad(bias).to_vector<float>()) CHECK(std::abs(sum - 1e5f) < 1.0f);
}

TEST_CASE("linear takes inputs of any rank, and views of them") {
  const Tensor x = set_requires_grad(Tensor::from<float>({1, 2, 3, 4, 5, 6, 7, 8}, {2, 2, 2}));
  const Tensor weight = Tensor::from<float>({1, 0, 0, 1, 1, 1}, {3, 2}), bias = Tensor::from<float>({0, 0, 10}, {3});
  const Tensor y = linear(x, weight, bias);
  CHECK(y.shape() == Shape{2, 2, 3});
  CHECK(y.to_vector<float>() == Values{1, 2, 13, 3, 4, 17, 5, 6, 21, 7, 8, 25});
  backward(sum(y));
  CHECK(grad(x).to_vector<float>() == Values{2, 2, 2, 2, 2, 2, 2, 2});
  CHECK(linear(transpose(x, 0, 1), weight, bias).to_vector<float>() == Values{1, 2, 13, 5, 6, 21, 3, 4, 17, 7, 8, 25});
  CHECK(linear(select(select(x, 0, 1), 0, 0), weight, bias).to_vector<float>() == Values{5, 6, 21});
  CHECK(linear(Tensor::zeros({4, 0, 2}), weight, bias).shape() == Shape{4, 0, 3});
  CHECK(linear_relu(Tensor::zeros({2, 3, 0}), Tensor::zeros({3, 0}), bias).to_vector<float>()[2] == 10.0f);
}

TEST_CASE("functions of a tensor that is not there, or of integers, say so and what to do") {
  const Tensor none, integers = Tensor::zeros({2, 3}, {.dtype = DType::i64});
  using Function = std::function<void(const Tensor&)>;
  const std::vector<std::pair<std::string, Function>> functions = {
      {"relu", [](const Tensor& x) { relu(x); }},
      {"gelu", [](const Tensor& x) { gelu(x); }},
      {"silu", [](const Tensor& x) { silu(x); }},
      {"tanh", [](const Tensor& x) { autograd::tanh(x); }},
      {"scale", [](const Tensor& x) { scale(x, 2.0); }},
      {"add", [](const Tensor& x) { add(x, x); }},
      {"softplus", [](const Tensor& x) { softplus(x); }},
      {"maximum", [](const Tensor& x) { maximum(x, 1); }},
      {"mean", [](const Tensor& x) { mean(x); }},
      {"softmax", [](const Tensor& x) { softmax(x, 0); }},
      {"argmax", [](const Tensor& x) { argmax(x, 0); }},
      {"layer_norm", [](const Tensor& x) { layer_norm(x, {3}, {}, {}); }},
      {"group_norm", [](const Tensor& x) { group_norm(x, 1, {}, {}); }},
      {"matmul", [](const Tensor& x) { matmul(x, x); }},
      {"linear", [](const Tensor& x) { linear(x, x, {}); }},
      {"softmax_cross_entropy",
       [](const Tensor& x) { softmax_cross_entropy(x, Tensor::zeros({2}, {.dtype = DType::i64})); }},
      {"nll_loss", [](const Tensor& x) { nll_loss(x, Tensor::zeros({2}, {.dtype = DType::i64})); }},
      {"mse_loss", [](const Tensor& x) { mse_loss(x, x); }},
      {"conv_transpose2d",
       [](const Tensor& x) {
         conv_transpose2d(x.defined() ? reshape(x, {1, 2, 3, 1}) : x, x.defined() ? reshape(x, {2, 3, 1, 1}) : x, {});
       }},
  };
  for (const auto& [name, function] : functions) {
    INFO(name);
    const auto call = function;
    CHECK_THAT(error_of([&] { call(none); }), ContainsText(name + ": ") && ContainsText("undefined tensor"));
    CHECK_THAT(error_of([&] { call(integers); }),
               ContainsText(name + ": ") && ContainsText("floating") && ContainsText("cast"));
  }
  CHECK_THAT(error_of([] { eq(Tensor(), Tensor()); }),
             ContainsText("eq: needs two defined tensors, got undefined tensor"));
  CHECK_THAT(error_of([] { sum(Tensor()); }), ContainsText("sum: needs a defined tensor"));
  CHECK_THAT(error_of([] { unsqueeze(Tensor(), 0); }), ContainsText("unsqueeze: needs a defined tensor"));
  const Tensor deep = Tensor::zeros({1, 1, 1, 1, 1, 1, 1, 1}), row = Tensor::zeros({2, 3});
  CHECK_THAT(error_of([&] { unsqueeze(deep, 0); }), ContainsText("unsqueeze: f32[1, 1, 1, 1, 1, 1, 1, 1] has 8"));
  CHECK_THAT(error_of([&] { embedding(cast(deep, DType::i64), row); }), ContainsText("embedding: indices i64"));
  CHECK_THAT(error_of([&] {
               binary_cross_entropy_with_logits(row, row, Reduction::mean, Tensor::zeros({3}, {.dtype = DType::f64}));
             }),
             ContainsText("binary_cross_entropy_with_logits: input f32[2, 3] and pos_weight f64[3]"));
  CHECK_THAT(error_of([] { to(Tensor(), Device{}); }), ContainsText("to: needs a defined tensor"));
  CHECK_THAT(error_of([] { clamp(Tensor::zeros({1}), std::nan(""), 1.0); }), ContainsText("clamp: min and max"));
}

TEST_CASE("functions keep the layout of images") {
  const Tensor x = Tensor::full({2, 3, 4, 5}, 1.0, {.layout = Layout::channels_last});
  const Tensor bias = Tensor::full({1, 3, 1, 1}, 2.0);
  for (const Tensor& y :
       {relu(x), gelu(x), scale(x, 2.0), add(x, bias), add(bias, x), mul(x, x), cast(x, DType::f16)}) {
    CHECK(y.strides() == x.strides());
  }
}

TEST_CASE("batch norm with an activation has right gradients, also without weight or bias") {
  for (const Activation activation : {Activation::gelu, Activation::silu}) {
    for (const bool training : {true, false}) {
      const auto values = [](const Shape& shape, double factor) {
        std::vector<double> all;
        for (std::int64_t i = 0; i < element_count(shape); ++i)
          all.push_back(2.0 * std::sin(factor * (1.0 + static_cast<double>(i))));
        return set_requires_grad(Tensor::from(all, shape));
      };
      const Tensor x = values({3, 2, 2, 3}, 1.7), weight = values({2}, 0.9), bias = values({2}, 0.3);
      const Tensor mean = Tensor::full({2}, 0.25, {.dtype = DType::f64}),
                   variance = Tensor::full({2}, 1.5, {.dtype = DType::f64});
      const auto report = [&](const Tensor& w, const Tensor& b) {
        std::vector<Tensor> inputs{x};
        for (const Tensor& tensor : {w, b})
          if (tensor.defined()) inputs.push_back(tensor);
        return gradcheck(
            [&](const std::vector<Tensor>& in) {
              return batch_norm(in[0], w.defined() ? in[1] : w, b.defined() ? in.back() : b, mean.clone(),
                                variance.clone(), {.training = training, .activation = activation});
            },
            inputs);
      };
      CHECK(report(weight, bias).message == "");
      CHECK(report(weight, {}).message == "");
      CHECK(report({}, bias).message == "");
      CHECK(report({}, {}).message == "");
    }
  }
}

TEST_CASE("batch norm with an activation keeps no more than batch norm") {
  const Tensor x = set_requires_grad(Tensor::full({16, 8, 9, 9}, 1.5, {.layout = Layout::channels_last}));
  const Tensor none;
  const auto kept = [&](Activation activation) {
    const std::int64_t before = memory_stats(Device{}).current_total;
    const Tensor y = batch_norm(x, none, none, none, none, {.activation = activation});
    return memory_stats(Device{}).current_total - before;
  };
  const std::int64_t plain = kept(Activation::none);
  CHECK(plain >= x.numel() * 4);  // y
  for (const Activation activation : {Activation::relu, Activation::gelu, Activation::silu})
    CHECK(kept(activation) == plain);
}

TEST_CASE("integers and masks have sums, i64, of any strides; means of them are refused") {
  const Tensor labels = Tensor::from<std::int64_t>({3, 1, 2, 2}, {2, 2});
  CHECK(sum(labels).dtype() == DType::i64);
  CHECK(sum(labels).item() == 8);
  CHECK(sum(labels, 0).to_vector<int>() == std::vector{5, 3});
  CHECK(sum(labels, 1, true).shape() == Shape{2, 1});
  CHECK(sum(eq(labels, 2)).item() == 2);
  CHECK(sum(Tensor::full({1000}, 255, {.dtype = DType::u8})).item() == 255000);
  CHECK(sum(Tensor::zeros({0, 3}, {.dtype = DType::i32}), 0).to_vector<int>() == std::vector{0, 0, 0});
  CHECK(!requires_grad(sum(gt(set_requires_grad(Tensor::full({3}, 1.0)), 0))));
  for (const DType dtype : {DType::i64, DType::i32, DType::u8}) {
    const Tensor x = whole_numbers({3, 40, 1001}, dtype);
    for (const Tensor& view : {x, x.transpose(0, 2), x.narrow(2, 1, 500, 2), x.select(0, 1).expand({2, 40, 1001})}) {
      INFO(name_of(dtype) << " with strides " << to_string(view.strides()));
      const std::vector<std::int64_t> values = view.to_vector<std::int64_t>();
      std::uint64_t total = 0;
      for (const std::int64_t value : values) total += static_cast<std::uint64_t>(value);
      CHECK(sum(view).to_vector<std::int64_t>().front() == static_cast<std::int64_t>(total));
      for (const std::vector<int>& dims : std::vector<std::vector<int>>{{0}, {1}, {2}, {0, 2}, {1, 2}}) {
        Shape kept = view.shape();
        for (const int dim : dims) kept[dim] = 1;
        const Tensor expected = Tensor::empty(kept, {.dtype = DType::i64});
        kernels::reference::sum_to(view, Out(expected));
        CHECK(sum(view, dims, true).to_vector<std::int64_t>() == expected.to_vector<std::int64_t>());
      }
    }
  }
  CHECK_THAT(error_of([&] { mean(labels); }), ContainsText("mean: needs a floating dtype"));
  CHECK_THAT(error_of([&] { mean(labels, 0); }), ContainsText("mean: needs a floating dtype"));
}

TEST_CASE("mean of nothing is NaN, sum of nothing is 0") {
  CHECK(std::isnan(mean(Tensor::zeros({0, 3})).item()));
  CHECK(sum(Tensor::zeros({0, 3})).item() == 0.0);
}

TEST_CASE("sums along dimensions without elements are 0, means NaN; without sums nothing is there") {
  const Tensor x = set_requires_grad(Tensor::zeros({2, 0, 3}));
  const Tensor y = sum(x, 1, true);
  CHECK(y.shape() == Shape{2, 1, 3});
  CHECK(y.to_vector<float>() == Values(6, 0.0f));
  for (const float value : mean(x, 1).to_vector<float>()) CHECK(std::isnan(value));
  CHECK(mean(x, {0, 2}).shape() == Shape{0});
  backward(y, Tensor::full({2, 1, 3}, 1.0));
  CHECK(grad(x).shape() == x.shape());
}

TEST_CASE("sums along dimensions of halves are f32, and of any strides; their gradients are halves") {
  const Tensor x = set_requires_grad(Tensor::full({300, 4}, 300.0, {.dtype = DType::f16}));
  const Tensor y = sum(transpose(x, 0, 1), -1);
  CHECK(y.dtype() == DType::f32);
  CHECK(y.to_vector<float>() == Values(4, 90000.0f));
  backward(mean(y, 0));
  CHECK(grad(x).dtype() == DType::f16);
  CHECK(grad(x).to_vector<float>() == Values(1200, 0.25f));
}

TEST_CASE("sums are the same bits for any number of threads") {
  std::vector<float> values(300001);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::sin(static_cast<float>(i)) * 1e3f;
  const Tensor x = Tensor::from(values, {300001});
  const Tensor image =
      Tensor::from(std::vector<float>(values.begin(), values.begin() + 299904), {64, 22, 71, 3}, Layout::channels_last);
  const auto results = [&] {
    const Tensor bias = set_requires_grad(Tensor::zeros({22, 1, 1}));
    backward(sum(mul(image, bias)));
    std::vector<float> all = grad(bias).to_vector<float>();
    for (const Tensor& t : {x, x.narrow(0, 0, 150000, 2), image, image.narrow(2, 1, 60)}) {
      all.push_back(sum(t).to_vector<float>().front());
      for (const float value : sum(t, 0).to_vector<float>()) all.push_back(value);
    }
    return all;
  };
  const int before = num_threads();
  set_num_threads(1);
  const auto one = results();
  for (const int threads : {2, 3, 7}) {
    set_num_threads(threads);
    CHECK(results() == one);
  }
  set_num_threads(before);
}

TEST_CASE("cast to its own dtype is the tensor itself, to an integer not recorded") {
  const Tensor x = leaf({1.5f, -2.5f});
  CHECK(cast(x, DType::f32).is_same(x));
  const Tensor whole = cast(x, DType::i32);
  CHECK_FALSE(requires_grad(whole));
  CHECK(whole.to_vector<float>() == Values{1.0f, -2.0f});
  const Tensor half = cast(x, DType::bf16);
  backward(half, Tensor::full({2}, 3.0, {.dtype = DType::bf16}));
  CHECK(grad(x).to_vector<float>() == Values{3.0f, 3.0f});
}

TEST_CASE("flatten of channels_last images is in PyTorch's order, and free where height and width are 1") {
  const Tensor x = Tensor::from<float>({0, 1, 2, 3, 4, 5, 6, 7}, {1, 2, 2, 2}, Layout::channels_last);
  CHECK(flatten(x).to_vector<float>() == Values{0, 1, 2, 3, 4, 5, 6, 7});
  const Tensor pooled = Tensor::zeros({4, 8, 1, 1}, {.layout = Layout::channels_last});
  CHECK(flatten(pooled).storage() == pooled.storage());
}

TEST_CASE("relu keeps nothing but its output") {
  const Tensor x = set_requires_grad(Tensor::full({1000}, 2.0));
  const std::int64_t before = memory_stats().current_total;
  const Tensor y = relu(x);
  CHECK(memory_stats().current_total - before == 4000);
}

TEST_CASE("mul keeps an operand only where the other needs a gradient") {
  const Tensor x = set_requires_grad(Tensor::full({1000}, 2.0));
  const std::int64_t before = memory_stats().current_total;
  Tensor y;
  {
    const Tensor temporary = scale(x, 3.0);
    y = mul(temporary, Tensor::full({}, 0.5));
  }
  CHECK(memory_stats().current_total - before <= 4000 + 4);  // y and the number, not `temporary`
}

TEST_CASE("the bias of a transposed convolution of halves is added to its rounded sums, and rounded again") {
  const RandomKey key{.seed = 3, .stream = RandomStream::test};
  const auto random = [&](const Shape& shape, std::uint64_t first, DType dtype) {
    Values values(static_cast<std::size_t>(element_count(shape)));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = key.normal(first + i);
    return cast(Tensor::from(values, shape), dtype);
  };
  for (const DType dtype : {DType::f16, DType::bf16}) {
    const Tensor x = random({2, 3, 4, 5}, 0, dtype), weight = random({3, 4, 3, 3}, 1000, dtype);
    const Tensor bias = random({4}, 2000, dtype);
    const Tensor y = conv_transpose2d(x, weight, bias, {.stride = {2, 2}});
    const Tensor plain = conv_transpose2d(x, weight, {}, {.stride = {2, 2}});
    CHECK(y.dtype() == dtype);
    CHECK(y.to_vector<float>() == add(plain, bias.view({1, 4, 1, 1})).to_vector<float>());
  }
}

TEST_CASE("a transposed convolution of f32 images by a half weight computes in the half dtype, as conv2d does") {
  const Tensor x = Tensor::from<float>({1.0f, 1.00390625f, -2.0f, 3.0f}, {1, 1, 2, 2});  // bf16 rounds the second
  const Tensor weight = Tensor::full({1, 2, 2, 2}, 1.5, {.dtype = DType::bf16});
  const Tensor y = conv_transpose2d(x, weight, {});
  CHECK(y.dtype() == DType::bf16);
  CHECK(y.to_vector<float>() == conv_transpose2d(cast(x, DType::bf16), weight, {}).to_vector<float>());
}

// What the op table does not ask of the functions: results on special values, layouts, memory kept.
#include "tandem/autograd/functions.h"
#include "tandem/autograd/variable.h"
#include "tandem/core/parallel.h"
#include "tests/support/catch.h"

#include <cmath>
#include <limits>

using namespace tandem;
using namespace tandem::autograd;

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

TEST_CASE("relu has gradient 0 at 0") {
  const Tensor x = leaf({-1.0f, 0.0f, 2.0f});
  backward(sum(relu(x)));
  CHECK(grad(x).to_vector<float>() == Values{0.0f, 0.0f, 1.0f});
}

TEST_CASE("functions keep the layout of images") {
  const Tensor x = Tensor::full({2, 3, 4, 5}, 1.0, {.layout = Layout::channels_last});
  const Tensor bias = Tensor::full({1, 3, 1, 1}, 2.0);
  for (const Tensor& y :
       {relu(x), gelu(x), scale(x, 2.0), add(x, bias), add(bias, x), mul(x, x), cast(x, DType::f16)}) {
    CHECK(y.strides() == x.strides());
  }
}

TEST_CASE("mean of nothing is NaN, sum of nothing is 0") {
  CHECK(std::isnan(mean(Tensor::zeros({0, 3})).item()));
  CHECK(sum(Tensor::zeros({0, 3})).item() == 0.0);
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

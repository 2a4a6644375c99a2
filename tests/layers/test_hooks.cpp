// Forward hooks: what they see and change, their order, and how they go away.
#include "tandem/autograd/functions.h"
#include "tandem/autograd/variable.h"
#include "tandem/layers/layers.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"

using namespace tandem;
using namespace tandem::layers;
using namespace tandem::test;

namespace {

std::vector<float> values_of(const Tensor& tensor) { return tensor.to_vector<float>(); }

Tensor plus_one(const Tensor& x) { return autograd::add(x, Tensor::full(x.shape(), 1.0)); }

}  // namespace

TEST_CASE("a hook keeps what it changes in itself") {
  ReLU layer;
  int before = 0, after = 0;
  layer.register_forward_pre_hook([&before, n = 0](Module&, const Tensor&) mutable { before = ++n; });
  layer.register_forward_hook([&after, n = 0](Module&, const Tensor&, const Tensor&) mutable { after = ++n; });
  for (int i = 0; i < 3; ++i) layer(Tensor::zeros({2}));
  CHECK(before == 3);
  CHECK(after == 3);
}

TEST_CASE("a hook sees module, input and output of each call") {
  Lambda layer(plus_one);
  std::vector<std::vector<float>> seen;
  const Module* of = nullptr;
  layer.register_forward_pre_hook([&](Module& module, const Tensor& input) {
    of = &module;
    seen.push_back(values_of(input));
  });
  layer.register_forward_hook([&](Module&, const Tensor& input, const Tensor& output) {
    seen.push_back(values_of(input));
    seen.push_back(values_of(output));
  });
  CHECK(values_of(layer(Tensor::full({1}, 2))) == std::vector<float>{3});
  CHECK(seen == std::vector<std::vector<float>>{{2}, {2}, {3}});
  CHECK(of == &layer);
}

TEST_CASE("what hooks return takes the place of input and output, in order of registration") {
  Lambda layer(plus_one);
  layer.register_forward_pre_hook([](Module&, const Tensor& x) { return autograd::scale(x, 10.0); });
  layer.register_forward_pre_hook([](Module&, const Tensor& x) { return plus_one(x); });
  layer.register_forward_hook([](Module&, const Tensor&, const Tensor& y) { return autograd::scale(y, 2.0); });
  layer.register_forward_hook([](Module&, const Tensor& x, const Tensor& y) { return autograd::add(x, y); });
  layer.register_forward_hook([](Module&, const Tensor&, const Tensor&) { return Tensor(); });  // as it is
  float observed = 0.0f;
  layer.set_observer([&](const Tensor& y) { observed = values_of(y).front(); });
  // (2 * 10 + 1), then + 1, * 2, + 21
  CHECK(values_of(layer(Tensor::full({1}, 2))) == std::vector<float>{65});
  CHECK(observed == 65.0f);
}

TEST_CASE("a removed hook is called no more, and its handle may outlive the module") {
  RemovableHandle handle, other;
  int calls = 0, others = 0;
  {
    Lambda layer(plus_one);
    handle = layer.register_forward_hook([&](Module&, const Tensor&, const Tensor&) { ++calls; });
    other = layer.register_forward_pre_hook([&](Module&, const Tensor&) { ++others; });
    CHECK(layer.is_observed());
    layer(Tensor::zeros({1}));
    RemovableHandle copy = handle;
    copy.remove();
    handle.remove();
    layer(Tensor::zeros({1}));
    CHECK(calls == 1);
    CHECK(others == 2);
    other.remove();
    CHECK_FALSE(layer.is_observed());
    other = layer.register_forward_pre_hook([&](Module&, const Tensor&) { ++others; });
  }
  handle.remove();
  other.remove();
  RemovableHandle().remove();
}

TEST_CASE("a hook may remove itself and add others while it runs") {
  Lambda layer(plus_one);
  int first = 0, second = 0;
  RemovableHandle handle;
  handle = layer.register_forward_hook([&](Module& module, const Tensor&, const Tensor&) {
    ++first;
    handle.remove();
    module.register_forward_hook([&second](Module&, const Tensor&, const Tensor&) { ++second; });
  });
  for (int i = 0; i < 3; ++i) layer(Tensor::zeros({1}));
  CHECK(first == 1);
  CHECK(second == 2);  // from the next call on
}

TEST_CASE("gradients flow through what a hook returns") {
  Lambda layer(plus_one);
  layer.register_forward_hook([](Module&, const Tensor&, const Tensor& y) { return autograd::scale(y, 3.0); });
  const Tensor x = autograd::set_requires_grad(Tensor::full({2}, 1.0));
  autograd::backward(autograd::sum(layer(x)));
  CHECK(values_of(autograd::grad(x)) == std::vector<float>{3, 3});
}

TEST_CASE("an error of a hook names its layer") {
  Sequential network;
  network.add("odd", plus_one).register_forward_hook([](Module&, const Tensor&, const Tensor& y) {
    require(y.numel() % 2 == 0, "needs an even number of elements, got {}", y.numel());
  });
  network(Tensor::zeros({2}));
  CHECK(error_of([&] { network(Tensor::zeros({3})); }) == "layer odd: needs an even number of elements, got 3");
}

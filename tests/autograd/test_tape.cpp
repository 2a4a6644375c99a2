// The tape: order of the walk, freeing, versions, sharing.
#include "tandem/autograd/functions.h"
#include "tandem/autograd/record.h"
#include "tandem/autograd/variable.h"
#include "tests/autograd/small_graphs.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"

#include <pthread.h>

using namespace tandem;
using namespace tandem::autograd;
using namespace tandem::test;

TEST_CASE("gradients add up over every path and every backward") {
  const Tensor x = leaf({3.0, -1.0});
  const Tensor y = add(mul(x, x), scale(x, 5.0));  // x used three times
  backward(sum(y));
  CHECK(grad_of(x) == Values{11.0, 3.0});
  backward(sum(square(x)));
  CHECK(grad_of(x) == Values{17.0, 1.0});
  clear_grad(x);
  CHECK_FALSE(grad(x).defined());
}

TEST_CASE("a gradient that several inputs share is left alone where one of them adds up") {
  const Tensor a = leaf({1.0, 2.0}), b = leaf({3.0, 4.0});
  const Tensor grad_root = Tensor::from<double>({1.0, 10.0}, {2});
  backward(add(add(a, b), a), grad_root);  // the gradient of each add is that of both its inputs
  CHECK(grad_of(a) == Values{2.0, 20.0});
  CHECK(grad_of(b) == Values{1.0, 10.0});
  CHECK(grad_root.to_vector<double>() == Values{1.0, 10.0});
}

TEST_CASE("a root of more than one element needs a gradient of its shape and dtype") {
  const Tensor x = leaf({1.0, 2.0});
  CHECK_THAT(error_of([&] { backward(square(x)); }), ContainsText("more than one element; pass grad_root"));
  CHECK_THAT(error_of([&] { backward(square(x), Tensor::zeros({2})); }), ContainsText("grad_root f32[2] does not fit"));
  CHECK_THAT(error_of([&] { backward(x.detach()); }),
             ContainsText("does not depend on any tensor that requires a gradient"));
  backward(square(x), Tensor::from<double>({10.0, 1.0}, {2}));
  CHECK(grad_of(x) == Values{20.0, 4.0});
}

TEST_CASE("backward from a leaf gives the leaf the root's gradient, in memory of its own") {
  const Tensor x = leaf({1.0, 2.0});
  const Tensor seed = Tensor::from<double>({10.0, 1.0}, {2});
  backward(x, seed);
  seed.fill(0.0);
  CHECK(grad_of(x) == Values{10.0, 1.0});
}

TEST_CASE("leaves never share the memory of their gradients") {
  const Tensor a = leaf({1.0}), b = leaf({2.0});
  backward(sum(add(a, b)));  // add hands one tensor to both
  CHECK(grad(a).storage() != grad(b).storage());
  grad(a).fill(7.0);
  CHECK(grad_of(b) == Values{1.0});
}

TEST_CASE("the walk visits a shared node once, after all that depends on it") {
  std::vector<std::string> log;
  const Tensor x = leaf({2.0});
  const Tensor shared = square(x, &log, "shared");
  const Tensor y = add(square(shared, &log, "left"), scale(square(shared, &log, "right"), 3.0));
  backward(y);
  REQUIRE(log.size() == 3);
  CHECK(log.back() == "shared");
  CHECK(grad_of(x) == Values{4.0 * 4.0 * 8.0});  // d 4 x^4 / dx
}

TEST_CASE("an operation leaves something for the one that takes its result, as long as the tape is there") {
  struct Left : Producer {
    int value = 3;
  };
  const Tensor x = leaf({1.0});
  auto left = std::make_shared<Left>();
  const Tensor y = record(
      "leaves", {x}, Tensor::zeros({1}, {.dtype = DType::f64}),
      [left](const BackwardContext& context) { return std::vector<Tensor>{context.grad_output()}; }, left);
  left = nullptr;
  const auto found = std::dynamic_pointer_cast<Left>(producer_of(y));
  REQUIRE(found);
  CHECK(found->value == 3);
  CHECK_FALSE(producer_of(x));
  CHECK_FALSE(producer_of(square(x)));
  CHECK_FALSE(producer_of(Tensor::zeros({1})));
}

TEST_CASE("what an operation left goes with the tape") {
  const Tensor x = leaf({1.0});
  const auto make = [&] {
    const auto left = std::make_shared<Producer>();
    return record(
        "leaves", {x}, Tensor::zeros({}, {.dtype = DType::f64}),
        [left](const BackwardContext&) { return std::vector<Tensor>(1); }, left);
  };
  const Tensor y = make();
  CHECK(producer_of(y));
  backward(y);
  CHECK_FALSE(producer_of(y));
}

TEST_CASE("a second backward over a freed tape is an error; retain_graph keeps it") {
  const Tensor x = leaf({3.0});
  const Tensor y = square(x);
  backward(y, {}, {.retain_graph = true});
  backward(y);
  CHECK(grad_of(x) == Values{12.0});
  CHECK_THAT(error_of([&] { backward(y); }), ContainsText("the tape behind 'square' was freed"));
}

TEST_CASE("saved tensors are freed as the walk passes them") {
  const Tensor x = set_requires_grad(Tensor::full({1000}, 2.0));
  const std::int64_t before = memory_stats().current_total;
  Tensor y = x;
  for (int i = 0; i < 10; ++i) y = gelu(y);
  y = sum(y);
  const std::int64_t recorded = memory_stats().current_total - before;
  CHECK(recorded >= 9 * 4000);
  reset_peak_memory();
  backward(y);
  // The gradient on its way needs two tensors; what it has passed is gone.
  CHECK(memory_stats().peak_total - before <= recorded + 2 * 4000 + 64);
  CHECK(memory_stats().current_total - before <= 4000 + 64);  // the gradient of x
}

TEST_CASE("changing a saved tensor in place is noticed") {
  const Tensor x = leaf({3.0});
  const Tensor y = square(x);
  x.detach().fill(4.0);
  CHECK_THAT(error_of([&] { backward(y); }), ContainsText("f64[1] was changed in place after it was saved"));
  const Tensor z = leaf({3.0});
  const Tensor doubled = scale(z, 2.0);  // saves nothing
  z.detach().fill(4.0);
  backward(doubled);
  CHECK(grad_of(z) == Values{2.0});
}

TEST_CASE("nothing is recorded under NoGrad or without inputs that require gradients") {
  const Tensor x = leaf({3.0});
  {
    const NoGrad no_grad;
    CHECK_FALSE(grad_enabled());
    CHECK_FALSE(requires_grad(square(x)));
    {
      const GradMode on(true);
      CHECK(requires_grad(square(x)));
    }
    CHECK_FALSE(should_record({x}));
  }
  CHECK(requires_grad(square(x)));
  CHECK_FALSE(requires_grad(square(x.detach())));
  CHECK_FALSE(should_record({x.detach(), Tensor()}));
}

// On a stack of 256 KiB, where recursion of any depth near 100,000 cannot hide.
TEST_CASE("a chain of 100,000 nodes overflows no stack, neither in backward nor in destruction") {
  const auto walk = [](void*) -> void* {
    const Tensor x = leaf({1.0});
    Tensor y = x;
    for (int i = 0; i < 100000; ++i) y = scale(y, 1.0);
    backward(y);
    CHECK(grad_of(x) == Values{1.0});
    Tensor never_walked = x;
    for (int i = 0; i < 100000; ++i) never_walked = square(never_walked);
    never_walked = Tensor();
    return nullptr;
  };
  pthread_attr_t attributes;
  REQUIRE(pthread_attr_init(&attributes) == 0);
  REQUIRE(pthread_attr_setstacksize(&attributes, 256 * 1024) == 0);
  pthread_t thread;
  REQUIRE(pthread_create(&thread, &attributes, walk, nullptr) == 0);
  REQUIRE(pthread_join(thread, nullptr) == 0);
  pthread_attr_destroy(&attributes);
}

TEST_CASE("several outputs: unused ones arrive undefined") {
  const Tensor x = leaf({1.0, 2.0});
  const auto split = [](const Tensor& t) {
    const Tensor raw = t.detach();
    return record("split", {t}, {raw.narrow(0, 0, 1), raw.narrow(0, 1, 1)}, [](const BackwardContext& context) {
      CHECK(context.grad_output(0).defined());
      CHECK_FALSE(context.grad_output(1).defined());
      const Tensor result = Tensor::zeros({2}, {.dtype = DType::f64});
      result.narrow(0, 0, 1).copy_from(context.grad_output(0));
      return std::vector<Tensor>{result};
    });
  };
  const std::vector<Tensor> parts = split(x);
  backward(scale(parts[0], 3.0));
  CHECK(grad_of(x) == Values{3.0, 0.0});
}

TEST_CASE("inputs that need no gradient are not asked for one") {
  const Tensor x = leaf({2.0}), constant = Tensor::from<double>({5.0}, {1});
  const Tensor y = record("probe", {x, constant, Tensor()}, Tensor::zeros({1}, {.dtype = DType::f64}),
                          [](const BackwardContext& context) {
                            CHECK(context.needs(0));
                            CHECK_FALSE(context.needs(1));
                            CHECK_FALSE(context.needs(2));
                            return std::vector<Tensor>{context.grad_output(), Tensor(), Tensor()};
                          });
  backward(y);
  CHECK_FALSE(grad(constant).defined());
}

TEST_CASE("a backward function that returns the wrong thing is named") {
  const Tensor x = leaf({1.0, 2.0});
  const auto broken = [&](std::vector<Tensor> result) {
    const Tensor y = record("broken", {x}, Tensor::zeros({}, {.dtype = DType::f64}),
                            [result](const BackwardContext&) { return result; });
    return error_of([&] { backward(y); });
  };
  CHECK_THAT(broken({}), ContainsText("backward of 'broken' returned 0 gradients for 1 inputs"));
  CHECK_THAT(broken({Tensor::zeros({3}, {.dtype = DType::f64})}),
             ContainsText("gave f64[3] as gradient of input 0, which is f64[2]"));
  CHECK_THAT(broken({Tensor::zeros({2})}), ContainsText("gave f32[2]"));
  CHECK_THAT(error_of([&] { record("again", {x}, x, [](const BackwardContext&) { return std::vector<Tensor>{}; }); }),
             ContainsText("output 0 of again already has gradient metadata"));
}

TEST_CASE("a backward function that asks for inputs and outputs that are not there is told so") {
  const Tensor leaf = set_requires_grad(Tensor::full({2}, 1.0));
  const auto asking = [&](const std::function<void(const BackwardContext&)>& question) {
    const Tensor y = record("asking", {leaf}, Tensor::full({2}, 1.0), [question](const BackwardContext& context) {
      question(context);
      return std::vector<Tensor>{context.grad_output()};
    });
    return error_of([&] { backward(y, Tensor::full({2}, 1.0)); });
  };
  CHECK_THAT(asking([](const BackwardContext& c) { c.needs(1); }), ContainsText("no input 1: the operation has 1"));
  CHECK_THAT(asking([](const BackwardContext& c) { c.new_gradient(7); }),
             ContainsText("no input 7: the operation has 1"));
  CHECK_THAT(asking([](const BackwardContext& c) { c.grad_output(1); }),
             ContainsText("grad_output(1): the operation has 1"));
}

TEST_CASE("only floating leaves may require gradients") {
  CHECK_THAT(error_of([] { set_requires_grad(Tensor::zeros({2}, {.dtype = DType::i64})); }),
             ContainsText("only floating tensors"));
  const Tensor x = leaf({1.0});
  CHECK_THAT(error_of([&] { set_requires_grad(square(x), false); }), ContainsText("made by a recorded operation"));
  CHECK_THAT(error_of([&] { set_grad(x, Tensor::zeros({2})); }), ContainsText("gradient f32[2] does not fit"));
  CHECK(is_leaf(x));
  CHECK_FALSE(is_leaf(square(x)));
}

TEST_CASE("gradients are tagged, and take the layout of their leaf") {
  const Tensor x = set_requires_grad(Tensor::full({2, 3, 4, 5}, 1.0, {.layout = Layout::channels_last}));
  backward(sum(x));
  CHECK(grad(x).strides() == x.strides());
  CHECK(grad(x).storage()->tag() == MemoryTag::gradients);
}

TEST_CASE("a gradient that is given has elements of its own, and may have gaps") {
  const Tensor leaf = set_requires_grad(Tensor::zeros({2, 2}));
  const Tensor three = Tensor::zeros({3});
  CHECK_THAT(error_of([&] { set_grad(leaf, three.as_strided({2, 2}, {1, 1}, 0)); }), ContainsText("share memory"));
  CHECK_THAT(error_of([&] { set_grad(leaf, leaf.detach()); }), ContainsText("where the leaf's own elements are"));
  CHECK_THAT(error_of([] { set_grad(Tensor(), Tensor::zeros({2})); }), ContainsText("set_grad: needs a defined leaf"));
  const Tensor row = Tensor::zeros({8});
  const Tensor part = set_requires_grad(row.narrow(0, 0, 4));
  CHECK_THAT(error_of([&] { set_grad(part, row.narrow(0, 3, 4)); }), ContainsText("where the leaf's own elements are"));
  CHECK_THAT(error_of([&] { set_gradient_place(part, row.narrow(0, 0, 4)); }), ContainsText("the leaf's own elements"));
  const Tensor pairs = Tensor::zeros({4, 2});  // columns lie between each other, and share nothing
  set_grad(set_requires_grad(pairs.select(1, 0)), pairs.select(1, 1));
  const Tensor wide = Tensor::full({2, 3}, 1.0);
  set_grad(leaf, wide.narrow(1, 1, 2));
  backward(sum(leaf));
  CHECK(grad(leaf).to_vector<float>() == std::vector<float>(4, 2.0f));
  CHECK(wide.to_vector<float>() == std::vector<float>(6, 1.0f));
}

TEST_CASE("backward from what was computed under NoGrad, and from nothing, says what to do") {
  const Tensor leaf = set_requires_grad(Tensor::zeros({2}));
  Tensor root;
  CHECK_THAT(error_of([&] { backward(root); }), ContainsText("backward: needs a defined root"));
  {
    const NoGrad no_grad;
    root = sum(leaf);
  }
  CHECK_THAT(error_of([&] { backward(root); }), ContainsText("set_requires_grad") && ContainsText("NoGrad"));
}

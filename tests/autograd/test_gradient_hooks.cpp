// Hooks of gradients, and which gradients a leaf takes.
#include "tandem/autograd/functions.h"
#include "tandem/autograd/record.h"
#include "tandem/autograd/variable.h"
#include "tests/autograd/small_graphs.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"

using namespace tandem;
using namespace tandem::autograd;
using namespace tandem::test;

TEST_CASE("a hook fires once, with the final gradient, before earlier layers run") {
  std::vector<std::string> log;
  const Tensor x = leaf({1.0}), early = leaf({2.0}), late = leaf({3.0}), unused = leaf({4.0});
  const auto note = [&log](std::string name) {
    return [&log, name](const Tensor& gradient) {
      log.push_back(fmt::format("{} {}", name, gradient.item()));
      return gradient;
    };
  };
  on_gradient_ready(late, note("late"));
  on_gradient_ready(early, note("early"));
  on_gradient_ready(unused, note("unused"));
  const Tensor first = square(mul(x, early), &log, "first");                  // 4
  const Tensor second = square(mul(mul(first, late), late), &log, "second");  // late twice
  backward(second);
  // second = (first late^2)^2 = 16 * 81; d/dlate = 4 first^2 late^3, d/dearly = 4 x^4 early^3 late^4.
  CHECK(log == std::vector<std::string>{"second", "late 1728", "first", "early 2592"});
}

TEST_CASE("hooks run in order, may replace the gradient, and can be cleared") {
  const Tensor x = leaf({1.0});
  on_gradient_ready(x, [](const Tensor&) { return Tensor::full({1}, 5.0, {.dtype = DType::f64}); });
  on_gradient_ready(x, [](const Tensor& gradient) {
    gradient.fill(gradient.item() + 1.0);
    return gradient;
  });
  backward(sum(square(x)));
  CHECK(grad_of(x) == Values{6.0});
  clear_hooks(x);
  clear_grad(x);
  backward(sum(square(x)));
  CHECK(grad_of(x) == Values{2.0});
  CHECK_THAT(error_of([&] { on_gradient_ready(x, {}); }), ContainsText("is empty"));
  CHECK_THAT(error_of([&] { on_gradient_ready(square(x), [](const Tensor& gradient) { return gradient; }); }),
             ContainsText("is not a leaf"));
}

TEST_CASE("final hooks run after all others, whichever were added first, and clear_hooks() leaves them") {
  const Tensor x = leaf({1.0});
  Values seen;
  on_gradient_final(x, [&](const Tensor& gradient) {
    seen.push_back(gradient.item());
    return gradient;
  });
  on_gradient_ready(x, [](const Tensor& gradient) {
    gradient.fill(7.0);
    return gradient;
  });
  backward(sum(square(x)));
  CHECK(seen == Values{7.0});
  clear_hooks(x);
  clear_grad(x);
  backward(sum(square(x)));
  CHECK(seen == Values{7.0, 2.0});
  CHECK_THAT(error_of([&] { on_gradient_final(x, {}); }), ContainsText("is empty"));
  CHECK_THAT(error_of([&] { on_gradient_final(square(x), [](const Tensor& gradient) { return gradient; }); }),
             ContainsText("is not a leaf"));
}

TEST_CASE("a gradient hook keeps what it changes in itself") {
  const Tensor x = leaf({1.0});
  int calls = 0, final_calls = 0;
  on_gradient_ready(x, [&calls, n = 0](const Tensor& gradient) mutable {
    calls = ++n;
    return gradient;
  });
  on_gradient_final(x, [&final_calls, n = 0](const Tensor& gradient) mutable {
    final_calls = ++n;
    return gradient;
  });
  for (int i = 0; i < 3; ++i) backward(sum(x));
  CHECK(calls == 3);
  CHECK(final_calls == 3);
}

TEST_CASE("a leaf that wants no gradient any more by the time of backward() gets none") {
  const Tensor x = leaf({1.0}), y = leaf({2.0});
  const Tensor z = sum(mul(x, y));
  set_requires_grad(x, false);
  backward(z);
  CHECK_FALSE(grad(x).defined());
  CHECK(grad_of(y) == Values{1.0});
}

TEST_CASE("gradients that cannot be a leaf's are refused") {
  const Tensor x = leaf({1.0});
  CHECK_THAT(error_of([&] { set_grad(square(x), x.detach()); }), ContainsText("is no floating leaf"));
  CHECK_THAT(
      error_of([&] { set_grad(Tensor::zeros({1}, {.dtype = DType::i64}), Tensor::zeros({1}, {.dtype = DType::i64})); }),
      ContainsText("i64[1] is no floating leaf"));
  CHECK_THAT(error_of([&] { set_grad(x, x); }), ContainsText("give gradient.detach()"));
  CHECK_THAT(error_of([&] { set_grad(x, square(x)); }), ContainsText("give gradient.detach()"));
}

TEST_CASE("a gradient that repeats elements is refused") {
  const Tensor x = leaf({1.0, 2.0});
  const Tensor one = Tensor::full({1}, 3.0, {.dtype = DType::f64});
  CHECK_THAT(error_of([&] { set_grad(x, one.expand({2})); }),
             ContainsText("share memory; give a copy by contiguous()"));
  CHECK_FALSE(grad(x).defined());
  set_grad(x, one.expand({2}).contiguous());
  CHECK(grad_of(x) == Values{3.0, 3.0});
}

TEST_CASE("what a hook returns must fit its leaf") {
  const Tensor x = leaf({1.0, 2.0});
  set_grad(x, Tensor::full({2}, 7.0, {.dtype = DType::f64}));
  const auto error_with = [&](const Tensor& returned) {
    clear_hooks(x);
    on_gradient_ready(x, [&](const Tensor&) { return returned; });
    return error_of([&] { backward(sum(x)); });
  };
  CHECK_THAT(error_with({}), ContainsText("a hook of leaf f64[2] returned no gradient"));
  CHECK_THAT(error_with(Tensor::zeros({3}, {.dtype = DType::f64})), ContainsText("f64[3] does not fit"));
  CHECK_THAT(error_with(Tensor::zeros({2}, {.dtype = DType::f32})), ContainsText("f32[2] does not fit"));
  CHECK(error_with(Tensor::zeros({2}, {.dtype = DType::f64})) == "no error");
  CHECK(grad_of(x) == Values{0.0, 0.0});
}

TEST_CASE("the gradient of a leaf is what it was before if a hook throws") {
  const Tensor x = leaf({1.0});
  on_gradient_ready(x, [](const Tensor&) -> Tensor { fail("no more of these"); });
  CHECK_THAT(error_of([&] { backward(sum(x)); }), ContainsText("no more of these"));
  CHECK_FALSE(grad(x).defined());
}

TEST_CASE("hooks run where a leaf has a gradient, whichever backward() it is of") {
  const Tensor x = leaf({1.0});
  Values seen;
  on_gradient_ready(x, [&](const Tensor& gradient) {
    seen.push_back(gradient.item());
    return gradient;
  });
  const auto nothing = [&] {
    return record("nothing", {x}, Tensor::zeros({}), [](const BackwardContext&) { return std::vector<Tensor>(1); });
  };
  backward(nothing());
  CHECK(seen.empty());
  CHECK_FALSE(grad(x).defined());
  backward(sum(x));
  const auto given = gradient_counts(x).given;
  backward(nothing());
  CHECK(seen == Values{1.0, 1.0});
  CHECK(gradient_counts(x).given == given);  // it was neither added to nor replaced
}

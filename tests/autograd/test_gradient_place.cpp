// Gradients that backward() leaves where their leaf wants them, instead of in memory of their own.
#include "tandem/autograd/functions.h"
#include "tandem/autograd/record.h"
#include "tandem/autograd/variable.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"

using namespace tandem;
using namespace tandem::autograd;
using namespace tandem::test;

namespace {

using Values = std::vector<double>;

struct PlacedLeaf {
  Tensor leaf, place;

  explicit PlacedLeaf(const Shape& shape, DType dtype = DType::f32, DType place_dtype = DType::f32)
      : leaf(set_requires_grad(Tensor::full(shape, 2.0, {.dtype = dtype}))),
        place(Tensor::full(shape, 99.0, {.dtype = place_dtype})) {
    set_gradient_place(leaf, place);
  }
};

/// An operation whose gradient is `value` everywhere; `written` is the tensor that it asked for.
Tensor constant_gradient(const Tensor& x, double value, Tensor* written) {
  return record("constant_gradient", {x}, Tensor::zeros({}, {.dtype = x.dtype()}), [=](const BackwardContext& context) {
    const Tensor gradient = context.new_gradient(0);
    gradient.fill(value);
    *written = gradient;
    return std::vector<Tensor>{gradient};
  });
}

}  // namespace

TEST_CASE("a gradient is written where its leaf wants it, step after step") {
  const PlacedLeaf x({3});
  CHECK(gradient_place(x.leaf).is_same(x.place));
  for (const double value : {4.0, 5.0}) {
    Tensor written;
    backward(constant_gradient(x.leaf, value, &written));
    CHECK(written.is_same(x.place));
    CHECK(grad(x.leaf).is_same(x.place));
    CHECK(x.place.to_vector<double>() == Values(3, value));
    clear_grad(x.leaf);
    CHECK_FALSE(grad(x.leaf).defined());
    CHECK(gradient_place(x.leaf).is_same(x.place));
  }
  set_gradient_place(x.leaf, {});
  Tensor written;
  backward(constant_gradient(x.leaf, 6.0, &written));
  CHECK(grad(x.leaf).storage() != x.place.storage());
  CHECK(x.place.to_vector<double>() == Values(3, 5.0));
}

TEST_CASE("a gradient that somebody holds changes with the next one in its place, a clone does not") {
  const PlacedLeaf x({3});
  Tensor written;
  backward(constant_gradient(x.leaf, 4.0, &written));
  const Tensor held = grad(x.leaf), clone = held.clone();
  clear_grad(x.leaf);
  backward(constant_gradient(x.leaf, 5.0, &written));
  CHECK(held.to_vector<double>() == Values(3, 5.0));
  CHECK(clone.to_vector<double>() == Values(3, 4.0));
}

TEST_CASE("a gradient that was made elsewhere is copied to its place") {
  const PlacedLeaf x({2, 2});
  backward(sum(transpose(x.leaf, 0, 1)));  // a view of one element
  CHECK(grad(x.leaf).is_same(x.place));
  CHECK(x.place.to_vector<double>() == Values(4, 1.0));
}

TEST_CASE("a leaf that is used several times gets the sum in its place, no part of it alone") {
  const PlacedLeaf x({3});
  Tensor first, second;
  backward(add(constant_gradient(x.leaf, 4.0, &first), constant_gradient(x.leaf, 5.0, &second)));
  CHECK(first.storage() != second.storage());
  CHECK(grad(x.leaf).is_same(x.place));
  CHECK(x.place.to_vector<double>() == Values(3, 9.0));

  const PlacedLeaf twice({3});  // two inputs of one operation
  backward(sum(mul(twice.leaf, twice.leaf)));
  CHECK(grad(twice.leaf).is_same(twice.place));
  CHECK(twice.place.to_vector<double>() == Values(3, 4.0));
}

TEST_CASE("further backward()s add to what is in the place, and write nowhere else") {
  const PlacedLeaf x({3});
  Tensor written;
  for (int k = 0; k < 3; ++k) backward(constant_gradient(x.leaf, 4.0, &written));
  CHECK(written.storage() != x.place.storage());
  CHECK(grad(x.leaf).is_same(x.place));
  CHECK(x.place.to_vector<double>() == Values(3, 12.0));

  set_grad(x.leaf, Tensor::full({3}, 1.0));  // a gradient that is not in the place stays where it is
  backward(constant_gradient(x.leaf, 4.0, &written));
  CHECK(grad(x.leaf).storage() != x.place.storage());
  CHECK(grad(x.leaf).to_vector<double>() == Values(3, 5.0));
  CHECK(x.place.to_vector<double>() == Values(3, 12.0));
}

TEST_CASE("the gradient of a half leaf may be placed in f32, where backward()s add up without rounding to half") {
  const PlacedLeaf x({3}, DType::f16);
  Tensor written;
  backward(constant_gradient(x.leaf, 2048.0, &written));
  CHECK(written.dtype() == DType::f16);
  CHECK(grad(x.leaf).is_same(x.place));
  backward(constant_gradient(x.leaf, 1.0, &written));
  CHECK(grad(x.leaf).is_same(x.place));
  CHECK(x.place.to_vector<double>() == Values(3, 2049.0));

  const PlacedLeaf as_half({3}, DType::f16, DType::f16);
  backward(constant_gradient(as_half.leaf, 2048.0, &written));
  CHECK(written.is_same(as_half.place));
  backward(constant_gradient(as_half.leaf, 1.0, &written));  // sums of several are f32, and so are not in this place
  CHECK(grad(as_half.leaf).dtype() == DType::f32);
  CHECK(grad(as_half.leaf).to_vector<double>() == Values(3, 2049.0));
}

TEST_CASE("a gradient in the place of one input, returned for others too, is theirs whatever that leaf's hook does") {
  for (const std::size_t owner : {0u, 1u}) {
    const PlacedLeaf placed({3});
    const Tensor other = set_requires_grad(Tensor::full({3}, 2.0));
    on_gradient_ready(placed.leaf, [](Tensor gradient) {
      gradient.zero();
      return gradient;
    });
    std::vector<Tensor> inputs{placed.leaf, other};
    if (owner == 1) std::swap(inputs[0], inputs[1]);
    const Tensor y = record("sum_of_both", inputs, Tensor::zeros({}), [owner](const BackwardContext& context) {
      const Tensor gradient = context.new_gradient(owner);
      gradient.fill(4.0);
      return std::vector<Tensor>{gradient, gradient};
    });
    backward(y);
    CHECK(placed.place.to_vector<double>() == Values(3, 0.0));
    CHECK(grad(other).to_vector<double>() == Values(3, 4.0));
  }
}

TEST_CASE("a kernel that needs another layout gets memory of its own, and its result is copied") {
  const PlacedLeaf x({1, 2, 2, 2});
  Tensor written;
  const Tensor y = record("channels_last", {x.leaf}, Tensor::zeros({}), [&](const BackwardContext& context) {
    written = context.new_gradient(0, Layout::channels_last);
    written.fill(3.0);
    return std::vector<Tensor>{written};
  });
  backward(y);
  CHECK(written.is_dense(Layout::channels_last));
  CHECK(written.storage() != x.place.storage());
  CHECK(x.place.to_vector<double>() == Values(8, 3.0));
}

TEST_CASE("an operation is asked for no gradient of an input that needs none") {
  const Tensor x = set_requires_grad(Tensor::zeros({2})), constant = Tensor::zeros({2});
  Tensor of_constant = x, of_other = x, made;
  const Tensor y = record("two_inputs", {x, constant}, Tensor::zeros({}), [&](const BackwardContext& context) {
    of_constant = context.new_gradient(1);
    of_other = context.new_gradient_of(constant);
    made = context.new_gradient(0);
    made.zero();
    return std::vector<Tensor>{made, {}};
  });
  backward(y);
  CHECK_FALSE(of_constant.defined());
  CHECK_FALSE(of_other.defined());
  CHECK(describe(made) == "f32[2]");
}

TEST_CASE("a gradient can be made in passing by the operation above") {
  const PlacedLeaf weight({3}), elsewhere({3});
  Tensor in_passing, of_elsewhere;
  const Tensor below = record("below", {weight.leaf}, Tensor::zeros({}),
                              [&](const BackwardContext&) { return std::vector<Tensor>{in_passing}; });
  const Tensor above = record("above", {below}, Tensor::zeros({}), [&](const BackwardContext& context) {
    in_passing = context.new_gradient_of(weight.leaf);
    in_passing.fill(7.0);
    of_elsewhere = context.new_gradient_of(elsewhere.leaf);  // takes no part in this backward()
    return std::vector<Tensor>{Tensor::zeros({})};
  });
  backward(above);
  CHECK(in_passing.is_same(weight.place));
  CHECK(grad(weight.leaf).is_same(weight.place));
  CHECK(of_elsewhere.storage() != elsewhere.place.storage());
}

TEST_CASE("a place must fit its leaf") {
  const Tensor x = set_requires_grad(Tensor::zeros({4}));
  const auto refused = [&](const Tensor& place) { return error_of([&] { set_gradient_place(x, place); }); };
  CHECK_THAT(refused(Tensor::zeros({5})), ContainsText("f32[5] on cpu is no place for a gradient of f32[4]"));
  CHECK_THAT(refused(Tensor::zeros({4}, {.dtype = DType::f64})), ContainsText("no place for"));
  CHECK_THAT(refused(Tensor::zeros({8}).narrow(0, 0, 4, 2)), ContainsText("must be dense"));
  CHECK_THAT(refused(Tensor::zeros({8}).narrow(0, 1, 4)), ContainsText("multiple of 64 bytes"));
  CHECK_THAT(refused(x.detach()), ContainsText("is where the leaf's own elements are"));
  CHECK_FALSE(gradient_place(x).defined());
  CHECK_THAT(error_of([&] { set_gradient_place(sum(x), Tensor::zeros({})); }), ContainsText("is not a leaf"));
  const Tensor half = set_requires_grad(Tensor::zeros({4}, {.dtype = DType::f16}));
  CHECK_NOTHROW(set_gradient_place(half, Tensor::zeros({4})));
}

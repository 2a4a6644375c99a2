// Views: each shows the right elements, or is refused.
#include "tandem/core/random.h"
#include "tandem/core/tensor.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"

#include <numeric>

using namespace tandem;
using namespace tandem::test;

namespace {

Tensor counting(const Shape& shape) {
  std::vector<double> values(static_cast<std::size_t>(element_count(shape)));
  std::iota(values.begin(), values.end(), 0.0);
  return Tensor::from(values, shape);
}

using Values = std::vector<double>;

}  // namespace

TEST_CASE("view cuts up a dense tensor anew") {
  const Tensor x = counting({2, 3, 4});
  CHECK(x.view({6, 4}).strides() == Strides{4, 1});
  CHECK(x.view({4, -1}).shape() == Shape{4, 6});
  CHECK(x.view({1, 24, 1}).to_vector<double>() == x.to_vector<double>());
  CHECK(Tensor::full({}, 3.0).view({1, 1}).item() == 3.0);
  CHECK(Tensor::zeros({0, 3}).view({3, 0}).shape() == Shape{3, 0});
  CHECK_THAT(error_of([&] { x.view({5, 5}); }),
             ContainsText("view: f64[2, 3, 4] has 24 elements, shape [5, 5] has 25"));
  CHECK_THAT(error_of([&] { x.view({-1, -1}); }), ContainsText("one -1"));
  CHECK_THAT(error_of([&] { x.view({-2, 12}); }), ContainsText("[-2, 12]"));
  CHECK_THAT(error_of([&] { x.view({5, -1}); }), ContainsText("cannot be seen as"));
  CHECK_THAT(error_of([&] { Tensor::zeros({0, 3}).view({0, -1}); }), ContainsText("cannot be seen as"));
}

TEST_CASE("view of strided tensors works where dimensions merge, and only there") {
  const Tensor x = counting({4, 3, 5});
  CHECK(x.narrow(0, 1, 2).view({6, 5}).to_vector<double>() == x.narrow(0, 1, 2).to_vector<double>());
  CHECK(x.narrow(2, 0, 2).view({12, 2}).to_vector<double>() == x.narrow(2, 0, 2).to_vector<double>());
  CHECK(x.narrow(1, 0, 1).view({4, 5}).stride(0) == 15);
  CHECK_THAT(error_of([&] { x.transpose(0, 1).view({60}); }), ContainsText("without a copy"));
  CHECK_THAT(error_of([&] { x.narrow(2, 0, 2).view({4, 6}); }), ContainsText("without a copy"));
  const Tensor expanded = counting({3, 1}).expand({3, 4});
  CHECK(expanded.view({3, 2, 2}).to_vector<double>() == expanded.to_vector<double>());
  CHECK_THAT(error_of([&] { expanded.view({12}); }), ContainsText("without a copy"));
}

// A view shows the elements in the same row-major order; where it is refused, no strides may do that.
TEST_CASE("view agrees with a search over strides on random tensors") {
  const RandomKey key{.seed = 11};
  std::uint64_t draws = 0;
  const auto below = [&](std::uint32_t bound) { return static_cast<std::int64_t>(key.below(draws++, bound)); };
  int seen = 0, refused = 0;
  for (int trial = 0; trial < 3000; ++trial) {
    Tensor x = counting({1 + below(3), 1 + below(3), 1 + below(4), 1 + below(4)});
    if (below(2)) x = x.transpose(static_cast<int>(below(4)), static_cast<int>(below(4)));
    if (below(2)) x = x.narrow(static_cast<int>(below(4)), 0, 1);
    if (below(3) == 0) x = x.unsqueeze(static_cast<int>(below(5)));
    Shape shape;
    std::int64_t rest = x.numel();
    while (rest > 1 && shape.rank() < 6) {
      std::int64_t size = 1 + below(static_cast<std::uint32_t>(rest));
      while (rest % size != 0) --size;
      shape.push_back(size);
      rest /= size;
    }
    shape.push_back(rest);
    const Values expected = x.to_vector<double>();
    try {
      const Tensor view = x.view(shape);
      ++seen;
      CHECK(view.shape() == shape);
      REQUIRE(view.to_vector<double>() == expected);
    } catch (const Error&) {
      ++refused;
      // The only strides that could do are given by the first step along each dimension (values are memory offsets).
      Strides strides = Strides::zeros(shape.rank());
      std::int64_t step = 1;
      for (int dim = shape.rank() - 1; dim >= 0; --dim) {
        strides[dim] =
            shape[dim] == 1 ? 1 : static_cast<std::int64_t>(expected[static_cast<std::size_t>(step)] - expected[0]);
        step *= shape[dim];
      }
      bool possible = true;
      for (int dim = 0; dim < shape.rank(); ++dim) possible = possible && strides[dim] >= 0;
      if (possible) {
        try {
          const Tensor guess = x.as_strided(shape, strides, static_cast<std::int64_t>(expected[0]));
          CHECK(guess.to_vector<double>() != expected);
        } catch (const Error&) {
        }
      }
    }
  }
  CHECK(seen > 300);
  CHECK(refused > 300);
}

TEST_CASE("permute and transpose reorder dimensions") {
  const Tensor x = counting({2, 3, 4});
  const std::array<int, 3> order{2, 0, -2};
  CHECK(x.permute(order).shape() == Shape{4, 2, 3});
  CHECK(x.permute(order).narrow(0, 1, 1).to_vector<double>() == Values{1, 5, 9, 13, 17, 21});
  CHECK(x.transpose(0, -1).shape() == Shape{4, 3, 2});
  const std::array<int, 3> twice{0, 0, 1};
  CHECK_THAT(error_of([&] { x.permute(twice); }), ContainsText("dimension 0 named twice"));
  CHECK_THAT(error_of([&] { x.permute(std::span<const int>(order).first(2)); }),
             ContainsText("needs 3 dimensions, got 2"));
  CHECK_THAT(error_of([&] { x.transpose(0, 3); }), ContainsText("dimension 3 is out of range"));
}

TEST_CASE("narrow, select, squeeze and unsqueeze") {
  const Tensor x = counting({3, 5});
  CHECK(x.narrow(1, 1, 2, 3).to_vector<double>() == Values{1, 4, 6, 9, 11, 14});
  CHECK(x.narrow(0, 3, 0).numel() == 0);
  CHECK(x.select(0, 2).to_vector<double>() == Values{10, 11, 12, 13, 14});
  CHECK(x.select(-1, 4).shape() == Shape{3});
  CHECK(x.unsqueeze(1).shape() == Shape{3, 1, 5});
  CHECK(x.unsqueeze(-1).squeeze(2).to_vector<double>() == x.to_vector<double>());
  CHECK_THAT(error_of([&] { x.narrow(1, 4, 2); }), ContainsText("narrow: 2 elements from 4"));
  CHECK_THAT(error_of([&] { x.narrow(1, 0, 3, 3); }), ContainsText("in steps of 3"));
  CHECK_THAT(error_of([&] { x.narrow(1, -1, 1); }), ContainsText("from -1"));
  CHECK_THAT(error_of([&] { x.narrow(1, 0, 1, 0); }), ContainsText("in steps of 0"));
  CHECK_THAT(error_of([&] { x.narrow(1, 1, std::int64_t{1} << 62, 4); }), ContainsText("do not fit"));
  CHECK_THAT(error_of([&] { x.select(0, 3); }), ContainsText("select: index 3"));
  CHECK_THAT(error_of([&] { x.squeeze(0); }), ContainsText("squeeze: dimension 0"));
  CHECK_THAT(error_of([&] { x.unsqueeze(3); }), ContainsText("unsqueeze: dimension 3"));
}

TEST_CASE("copies between views that share memory read before they write") {
  const Tensor row = counting({6});
  row.narrow(0, 1, 5).copy_from(row.narrow(0, 0, 5));
  CHECK(row.to_vector<double>() == Values{0, 0, 1, 2, 3, 4});
  row.narrow(0, 0, 5).copy_from(row.narrow(0, 1, 5));
  CHECK(row.to_vector<double>() == Values{0, 1, 2, 3, 4, 4});
  const Tensor square = counting({3, 3});
  square.copy_from(square.transpose(0, 1));
  CHECK(square.to_vector<double>() == Values{0, 3, 6, 1, 4, 7, 2, 5, 8});
  square.copy_from(square);
  CHECK(square.to_vector<double>() == Values{0, 3, 6, 1, 4, 7, 2, 5, 8});
  const Tensor columns = counting({2, 4});  // even columns into odd ones: one storage, no element in common
  columns.narrow(1, 1, 2, 2).copy_from(columns.narrow(1, 0, 2, 2));
  CHECK(columns.to_vector<double>() == Values{0, 0, 2, 2, 4, 4, 6, 6});
}

TEST_CASE("expand repeats by strides of 0") {
  const Tensor x = counting({3, 1});
  CHECK(x.expand({2, 3, 2}).to_vector<double>() == Values{0, 0, 1, 1, 2, 2, 0, 0, 1, 1, 2, 2});
  CHECK(x.expand({2, 3, 2}).strides() == Strides{0, 1, 0});
  CHECK(x.expand({3, 0}).numel() == 0);
  CHECK_THAT(error_of([&] { x.expand({3, -1}); }), ContainsText("expand: ") && ContainsText("cannot become [3, -1]"));
  CHECK_FALSE(x.expand({3, 2}).is_dense());
  CHECK_THAT(error_of([&] { x.expand({4, 2}); }), ContainsText("expand: f64[3, 1] cannot become [4, 2]"));
  CHECK_THAT(error_of([&] { x.expand({3}); }), ContainsText("cannot become [3]"));
}

TEST_CASE("as_strided stays inside its storage") {
  const Tensor x = counting({10});
  CHECK(x.as_strided({3, 2}, {2, 3}, 1).to_vector<double>() == Values{1, 4, 3, 6, 5, 8});
  CHECK(x.as_strided({0, 2}, {100, 100}, 0).numel() == 0);
  CHECK_THAT(error_of([&] { x.as_strided({3, 2}, {4, 2}, 0); }), ContainsText("leave the storage of 80 bytes"));
  CHECK_THAT(error_of([&] { x.as_strided({3}, {1}, 8); }), ContainsText("leave the storage"));
  constexpr std::int64_t kHuge = std::int64_t{1} << 62;
  CHECK_THAT(error_of([&] { x.as_strided({5, 5}, {kHuge, kHuge}, 0); }), ContainsText("leave the storage"));
  CHECK_THAT(error_of([&] { x.as_strided({2}, {1}, -1); }), ContainsText("leave the storage"));
  CHECK_THAT(error_of([&] { x.as_strided({2}, {-1}, 5); }), ContainsText("negative stride"));
  CHECK_THAT(error_of([&] { x.as_strided({2, 2}, {1}, 0); }), ContainsText("differ in rank"));
}

TEST_CASE("detach is a new handle to the same elements") {
  const Tensor x = counting({4});
  const Tensor y = x.detach();
  CHECK_FALSE(y.is_same(x));
  CHECK(y.storage() == x.storage());
}

// What comparisons must give, for every device.
#pragma once

#include "tandem/autograd/functions.h"
#include "tests/support/catch.h"

#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

namespace tandem::test {

/// Compares dense, permuted and broadcast tensors of `dtype` on `device`, in all ways there are.
inline void check_comparisons(DType dtype, Device device) {
  std::vector<double> left{-1, 0, 2, std::nan(""), 2, -INFINITY}, right{1, 0, 1, 2, std::nan(""), INFINITY};
  if (!is_floating(dtype)) {
    left = {0, 0, 2, 255, 1, 128};
    right = {1, 0, 0, 254, 1, 127};
  }
  const auto typed = [&](const std::vector<double>& values) {
    return autograd::cast(Tensor::from(values, {2, 3}), dtype).to(device);
  };
  using Compare = Tensor (*)(const Tensor&, const Tensor&);
  using Holds = bool (*)(double, double);
  const std::vector<std::pair<Compare, Holds>> all = {
      {autograd::eq, [](double a, double b) { return a == b; }},
      {autograd::ne, [](double a, double b) { return a != b; }},
      {autograd::lt, [](double a, double b) { return a < b; }},
      {autograd::le, [](double a, double b) { return a <= b; }},
      {autograd::gt, [](double a, double b) { return a > b; }},
      {autograd::ge, [](double a, double b) { return a >= b; }},
      {autograd::logical_and, [](double a, double b) { return a && b; }},
      {autograd::logical_or, [](double a, double b) { return a || b; }},
      {autograd::logical_xor, [](double a, double b) { return !a != !b; }}};
  for (const auto& [compare, rule] : all) {
    const auto check = [&, holds = rule](const Tensor& mask, const Tensor& a, const Tensor& b) {
      CHECK(mask.dtype() == DType::u8);
      CHECK(mask.device() == device);
      const std::vector<int> actual = mask.to_vector<int>();
      const std::vector<double> from_a = a.to_vector<double>(), from_b = b.expand(a.shape()).to_vector<double>();
      for (std::size_t i = 0; i < actual.size(); ++i) {
        INFO(name_of(dtype) << ": " << from_a[i] << " and " << from_b[i]);
        CHECK(actual[i] == (holds(from_a[i], from_b[i]) ? 1 : 0));
      }
    };
    const Tensor a = typed(left), b = typed(right);
    check(compare(a, b), a, b);
    check(compare(a.transpose(0, 1), b.transpose(0, 1)), a.transpose(0, 1), b.transpose(0, 1));
    check(compare(a, b.narrow(0, 0, 1)), a, b.narrow(0, 0, 1));
    check(compare(a.narrow(1, 0, 2, 2), b.narrow(1, 0, 2, 2)), a.narrow(1, 0, 2, 2), b.narrow(1, 0, 2, 2));
  }
  CHECK(autograd::logical_not(typed(left)).to_vector<int>() == autograd::eq(typed(left), 0).to_vector<int>());
  const Tensor two = Tensor::full({}, 2.0, {.dtype = dtype, .device = device});
  CHECK(autograd::ge(typed(left), 2.0).to_vector<int>() == autograd::ge(typed(left), two).to_vector<int>());
  CHECK(autograd::lt(Tensor::zeros({0, 3}, {.dtype = dtype, .device = device}), 1.0).shape() == Shape{0, 3});
}

/// Integers that a float or a double could not tell apart, of the dtype's sign.
inline void check_comparisons_of_great_integers(Device device) {
  constexpr std::int64_t kGreat = std::int64_t{1} << 62;
  const Tensor a = Tensor::from<std::int64_t>({kGreat, kGreat, -kGreat}, {3}).to(device);
  const Tensor b = Tensor::from<std::int64_t>({kGreat + 1, kGreat, -kGreat - 1}, {3}).to(device);
  CHECK(autograd::eq(a, b).to_vector<int>() == std::vector<int>{0, 1, 0});
  CHECK(autograd::lt(a, b).to_vector<int>() == std::vector<int>{1, 0, 0});
  CHECK(autograd::where(autograd::lt(a, b), a, b).to_vector<std::int64_t>() ==
        std::vector<std::int64_t>{kGreat, kGreat, -kGreat - 1});
  const Tensor c = Tensor::from<std::int32_t>({(1 << 24) + 1, -5}, {2}).to(device);
  CHECK(autograd::gt(c, 1 << 24).to_vector<int>() == std::vector<int>{1, 0});
}

/// where() of integers of `dtype`, dense and strided, with numbers.
inline void check_where_of_integers(DType dtype, Device device) {
  const auto typed = [&](const std::vector<double>& values) {
    return autograd::cast(Tensor::from(values, {2, 3}), dtype).to(device);
  };
  const Tensor a = typed({1, 2, 3, 4, 5, 6}), b = typed({10, 20, 30, 40, 50, 60}), mask = autograd::gt(a, 3);
  CHECK(autograd::where(mask, a, b).to_vector<int>() == std::vector<int>{10, 20, 30, 4, 5, 6});
  CHECK(autograd::where(mask, a, b).dtype() == dtype);
  CHECK(autograd::where(mask.transpose(0, 1), a.transpose(0, 1), b.transpose(0, 1)).to_vector<int>() ==
        std::vector<int>{10, 4, 20, 5, 30, 6});
  CHECK(autograd::where(mask, 0, b).to_vector<int>() == std::vector<int>{10, 20, 30, 0, 0, 0});
  CHECK(autograd::where(mask.narrow(1, 0, 1), a, b.narrow(0, 1, 1)).to_vector<int>() ==
        std::vector<int>{40, 50, 60, 4, 5, 6});
}

}  // namespace tandem::test
